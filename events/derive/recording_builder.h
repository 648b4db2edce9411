#pragma once
// A bus shows what left the caches, not what the processor executed. A read that hits a cache is
// invisible, so the first visible read of a byte is the only evidence of its initial value; a read
// that contradicts what the processor itself last put there can only mean that somebody else wrote.
// These two rules make transactions into a recording. docs/derivation.md has all the rules.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "events/access_run.h"
#include "events/bus_transaction.h"
#include "events/derive/access_clock.h"
#include "events/derive/memory_model.h"
#include "events/derive/simd_memory.h"
#include "events/on_chip_marker.h"
#include "events/recording.h"
#include "events/smbase_search.h"
#include "events/smm_entry.h"

namespace citcat {

struct BuilderOptions {
  /// As far as it is known when the capture is opened. A line burst in the stream shows a cache,
  /// whatever is declared here.
  BusModel bus;
  /// What shows interrupts that are not acknowledged on the bus.
  std::vector<OnChipMarker> on_chip = {};
  /// The processor has a TLB: page tables seen before the start may be in it, and need not be read
  /// again.
  bool has_tlb = false;
  /// What positions of the transactions count; of others than instructions only those of
  /// acknowledges are taken.
  CountUnit counts = CountUnit::instructions;
};

/// Derives a Recording from transactions in bus order. Memory grows with the distinct bytes touched
/// and the number of events. CpuState, provenance and internal reads are the caller's to fill in.
class RecordingBuilder {
 public:
  /// Evidence goes to `evidence` as it is found; null drops it. Not owned.
  RecordingBuilder(const BuilderOptions& options, EvidenceWriter* evidence);

  /// A transaction before the start of the recording. It does not enter the recording; where the
  /// captured machine has a cache or a TLB, what it shows of memory does, because the processor may
  /// read those bytes after the start without asking the bus.
  void observe(const BusTransaction& transaction);

  /// Ends the transactions before the start. Positions are counted from `base` on: one in the same
  /// instruction loses the iterations that were complete at `base` (a REP instruction interrupted
  /// there starts again from zero), later ones lose its instructions. Not calling it is the same as
  /// calling it first with position zero.
  void start(const Position& base);
  /// The same where the monitor's count at the start is not known.
  void start_uncounted() { counted_from_start_ = false; }

  /// The next transaction of the recording. Its `position` is as the monitor counted.
  void add(BusTransaction transaction) { add(std::span(&transaction, 1)); }
  /// The same for several. Turns each into the evidence it becomes: positions counted from the
  /// start, no data where it was read.
  void add(std::span<BusTransaction> transactions);

  /// Whether a run may be given to add(): where access times are kept by words, nothing marks
  /// interrupts, and all of it lies after the instruction of start().
  bool takes(const AccessRun& run) const {
    return model_.keeps_words() && options_.on_chip.empty() &&
           (!run.counted || run.lowest > base_.instruction);
  }
  /// The same as its transactions one by one.
  void add(AccessRun run);

  /// Where the first SMI saved the processor's state: SMBASE of the initial state. None where there
  /// was no SMI, or what it stored is not on the bus. To be asked before finish().
  std::optional<std::uint32_t> smbase() const { return smbase_; }
  bool has_smi() const { return smis_ != 0; }

  /// The recording. The builder is empty afterwards. `bus` is set from what was declared and seen.
  Recording finish();

  /// Position after rebasing by start().
  Position rebase(const Position& position) const { return rebase(position, base_); }
  static Position rebase(const Position& position, const Position& base) {
    if (position.instruction == base.instruction) {
      return {0, position.iteration - std::min(position.iteration, base.iteration)};
    }
    return {position.instruction - std::min(position.instruction, base.instruction),
            position.iteration};
  }

 private:
  void read(const BusTransaction& t);
  template <typename Access>
  void with_view(const BusTransaction& t, Access access);
  template <typename View>
  void touch(const BusTransaction& t, MemoryModel::Page& page, const View& view,
             std::uint32_t first, std::uint32_t size);
  void reconcile(const BusTransaction& t, MemoryModel::Page& page, std::uint32_t first,
                 std::uint32_t size);
  bool first_read(PhysAddr address, MemoryModel::Page& page, std::uint8_t value);
  void write(const BusTransaction& t);
  void keep_before(const BusTransaction& t, MemoryModel::Page& page, std::uint32_t first,
                   std::uint32_t size);
  void set_image(PhysAddr address, MemoryModel::Page& page, std::uint8_t value);
  void add_external(const BusTransaction& t, const MemoryModel::Page& page, std::uint32_t first,
                    std::uint32_t last);
  void add_interrupt(const BusTransaction& t, Interrupt::Kind kind);
  void look_for_markers(const BusTransaction& t);
  void add_on_chip(std::uint8_t vector, const BusTransaction& t);
  void add_smm_entry(const SmmEntryDetector::Entry& entry);
  void find_smm_revision(const BusTransaction& t);
  void keep_count(BusTransaction& t);
  void note_start(const BusTransaction& t);
  std::optional<Position> begun_from(const BusTransaction& t, std::uint32_t first,
                                     std::uint32_t last) const;
  void add_io_read(const BusTransaction& t);
  void add_memory(BusTransaction& t);
  void add_other(const BusTransaction& t);
  void derive(std::span<BusTransaction> transactions);
  void derive(BusTransaction& t);
  void derive(const AccessRun& run);
  void find_lines(const AccessRun& run);
  bool is_common(const AccessRun& run) const;
  static bool begins_last(const AccessRun& run);
  std::size_t derive_common(const AccessRun& run, std::size_t first, std::size_t count);
  std::size_t derive_each(const AccessRun& run, std::size_t first, std::size_t count,
                          std::uint32_t epoch, bool keeps);
  void count_accesses(const AccessTotals& more);
  void count_position(const BusTransaction& t);
  void count_memory(const BusTransaction& t);
  std::optional<std::size_t> last_of_chunk(std::size_t added) const;
  void hand_over_events(std::uint64_t index);
  bool has_cache() const { return saw_line_ || options_.bus.form != CacheForm::none; }
  bool remembers() const { return has_cache() || options_.has_tlb; }

  BuilderOptions options_;
  EvidenceWriter* evidence_;
  Recording recording_;
  MemoryModel model_;
  std::array<MemoryModel::Line*, AccessRun::kMax> lines_{};  ///< of the run that is derived
  SimdMemory wide_;                                          ///< the same run, where it has columns
  AccessClock clock_;
  MemoryImage before_;  ///< memory as the transactions before the start left it
  SmmEntryDetector smm_;
  SmbaseSearch smbase_search_;  ///< goes on after the first SMI that the monitor named
  std::optional<std::uint32_t> smbase_;
  std::uint64_t smis_ = 0;
  bool saw_smi_ = false;  ///< the monitor names SMIs itself
  /// Where the last SMI saved a revision that was not on the bus yet.
  std::optional<PhysAddr> smm_revision_at_;
  /// An interrupt whose table entry was read, and which is complete after so many stores.
  struct Delivery {
    std::uint8_t vector = 0;
    unsigned stores_left = 0;
  };
  std::optional<Delivery> delivery_;
  BusAnchor counts_;  ///< items before the current transaction
  /// Instructions that pins have reported since the last of these items.
  struct Begun {
    BusAnchor counts;
    std::vector<BusTransaction> starts;
  };
  Begun begun_;
  Position base_;
  bool counted_from_start_ = true;
  std::optional<EventCount> count_;  ///< of the acknowledge that is derived
  std::optional<std::uint64_t> instructions_;
  std::optional<std::uint64_t> shut_down_at_;  ///< instructions completed before it
  std::optional<std::uint64_t> last_start_;    ///< of an instruction that was seen to start
  std::uint64_t last_external_end_ = 0;  ///< index after the read the last external write is of
  bool saw_line_ = false;
  bool saw_write_back_ = false;
};

}  // namespace citcat
