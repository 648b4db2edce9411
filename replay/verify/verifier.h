#pragma once
// Checks a replay against everything the bus showed: each captured write in address, bytes and
// order, each port access, each special cycle, each write-back of a line, the hardware's own
// instruction stream where pins gave one.
//
// Order is that of the bus, with the freedom a processor has: posted writes may pass port accesses,
// and bytes of one instruction may come in another order where the processor's is not known, or the
// monitor that counted instructions is no pins.

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "events/recording.h"
#include "formats/io/number_set.h"
#include "formats/io/short_queue.h"
#include "replay/machine/block_template.h"
#include "replay/machine/machine.h"
#include "replay/machine/observer.h"
#include "replay/session/replayer.h"
#include "replay/verify/branch_matcher.h"
#include "replay/verify/comparison_policy.h"
#include "replay/verify/comparison_result.h"
#include "replay/verify/final_memory_check.h"
#include "replay/verify/lone_change.h"
#include "replay/verify/port_matcher.h"
#include "replay/verify/read_check.h"
#include "replay/verify/special_matcher.h"
#include "replay/x86/flag_effects.h"

namespace citcat {

struct VerifierOptions {
  ComparisonPolicy policy;
  bool reads = true;         ///< compare reads and line fills too, where the capture counts them
  bool final_memory = true;  ///< keep what compare_final() needs
  /// Take only what agrees plainly, by whole blocks of instructions where the capture allows it:
  /// see Verifier::plain(). Several times faster.
  bool plain = false;
};

/// How far a comparison has come: which captured transactions wait for the replay, and what was
/// compared so far.
struct VerifierProgress {
  explicit VerifierProgress(const Recording& recording)
      : ports_(recording.bus, recording.initial.model) {}

  struct PendingWrite {
    BusTransaction t;
    std::uint32_t unmatched = 0;  ///< bit i: byte i has not been written by the replay yet
    bool adopted = false;
  };
  struct PendingLine {
    BusTransaction t;
    std::uint32_t unmatched = 0;  ///< bit i: byte i has not been seen equal yet
    std::uint8_t parts = 1;       ///< transactions of the capture that it is
  };

  /// Number of the 16 bytes that an address lies in, the shortest lines that processors have.
  static std::uint32_t line_of(std::uint32_t address) { return address / 16; }
  /// One number for the lines that a transaction may be of at once.
  static std::uint32_t window_of(PhysAddr a) {
    return a.value / std::uint32_t{kMaxTransactionBytes};
  }
  /// The masks above when nothing has been seen of `size` bytes.
  static constexpr std::uint32_t all_bytes(std::uint32_t size) {
    return size >= 32 ? 0xffffffffu : (1u << size) - 1;
  }

  std::optional<BusTransaction> ahead_;  ///< read, and not pulled yet
  std::uint8_t ahead_parts_ = 1;         ///< transactions of the capture that it is
  bool at_end_ = false;
  bool beyond_ = false;
  bool counted_ = false;  ///< memory traffic carries positions
  bool all_counted_ = true;
  Position pulled_;  ///< of the transaction pulled last that is of memory
  std::uint64_t pulled_index_ = kNoTransaction;  ///< of the transaction pulled last

  ShortQueue<PendingWrite> writes_;
  PortMatcher ports_;
  SpecialMatcher specials_;
  BranchMatcher starts_;
  ShortQueue<PendingLine> lines_;
  /// Without positions: write-backs up to the next port access or interrupt, by window_of() their
  /// address, in order.
  std::unordered_map<std::uint32_t, std::deque<BusTransaction>> window_lines_;
  std::uint64_t interrupts_pulled_ = 0, interrupts_seen_ = 0;
  std::uint64_t progress_at_ = 0;  ///< instruction of the last agreement after the last event
  bool out_of_order_ = false;      ///< a later write matched before the first pending one
  std::size_t externals_seen_ = 0;

  /// Bytes not yet on the bus, with their bits that no manual tells: model-specific results,
  /// undefined flags.
  struct Unspecified {
    std::uint8_t bits = 0;   ///< that no manual tells
    std::uint8_t value = 0;  ///< of the byte as the replay stored it
  };
  std::unordered_map<std::uint32_t, Unspecified> specific_bytes_;
  NumberSet specific_lines_;  ///< in which there may be such
  PhysAddr copied_from_;      ///< what the MOVS in progress has read
  std::optional<Position> copied_at_;
  UndefinedFlagTracker flags_;
  ComparisonResult result_;
};

class Verifier final : public Sink, private VerifierProgress {
 public:
  Verifier(const Recording& recording, std::unique_ptr<EvidenceReader> evidence,
           const VerifierOptions& options);
  ~Verifier() override;
  /// The machine under test; call before the replay starts. Must outlive the verifier's use.
  void attach(Machine& machine) { machine_ = &machine; }

  // Sink. Each throws ReplayStopped at the first disagreement.
  bool wants_reads() const override { return reads_ != nullptr; }
  Detail detail() const override;
  Sink* block_receiver() override { return plain_ ? nullptr : this; }
  Position expected() override;
  bool expects_stores() const override { return recording_.bus.form != CacheForm::write_back; }
  bool may_run_block(Position first, std::uint32_t count) override;
  std::uint64_t reads_of_interest(Position first) const override;
  bool looks_ahead() const override { return recording_.bus.form != CacheForm::none; }
  bool agrees(const ExecutedBlock& block, Position first) override;
  void agreed(const ExecutedBlock& block, Position first) override;
  std::uint32_t agreed_iterations(const StringIterations& run, Position first) override;
  void copied(PhysAddr from, PhysAddr to, std::uint32_t size) override;
  void block(const ExecutedBlock&, Position) override {}
  void fetch(PhysAddr a, std::uint32_t size, Position now) override;
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) override;
  void address_space(std::uint32_t cr3, Position now) override;
  void external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) override;
  void instruction(const ExecutedInstruction& e, Position now) override;
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override;
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void delivered(const DeliveredEvent& event, Position now) override;
  void halted(Position now) override;
  void cache_flushed(bool write_back, Position now) override;
  void shutdown(Position now) override;

  /// After a complete replay: nothing captured before `end` may be left over. Throws ReplayStopped.
  void finish(Position end);
  /// The same for what the replay reported: a divergence if there is something left over.
  ReplayReport finish(ReplayReport report);
  const VerifyTotals& totals() const { return result_.totals; }
  /// Only what agrees plainly is taken, and undefined flags in the frames of interrupts: what
  /// another comparison would adopt or excuse besides is a divergence here. That one without
  /// VerifierOptions::plain has the last word then; on what agrees here it has none to add.
  bool plain() const { return plain_; }
  /// Every byte taken over from the bus.
  const std::vector<Adoption>& adoptions() const { return result_.adoptions; }
  /// The comparison at an instruction boundary, to come back to. Only without final memory, which
  /// is not part of it. The reader given to the constructor must be taken back by its owner.
  struct Checkpoint {
    VerifierProgress progress;
    FinalMemoryCheck::Progress final_memory;
    std::shared_ptr<const ReadCheck::Checkpoint> reads;  ///< null where reads are not compared
  };
  Checkpoint checkpoint() const;
  void restore(const Checkpoint& checkpoint);
  /// For trials: other writes to believe from here on, and memory that the capture showed wrongly.
  void waive(std::vector<std::uint64_t> transactions) {
    options_.policy.waived = std::move(transactions);
  }
  void correct_memory(PhysAddr a, std::span<const std::uint8_t> bytes) {
    if (reads_ != nullptr) reads_->correct(a, bytes);
  }
  /// Memory was changed here by somebody who knows better than the replay: write-backs that wait
  /// for their bytes are looked at again.
  void memory_changed(PhysAddr a) { settle_lines(window_of(machine_->memory().captured(a))); }
  /// A write-back of this line is taken for right, whatever it shows.
  void forgive_line(PhysAddr a);
  /// The captured transaction that agreed last.
  std::uint64_t last_agreed() const { return result_.last_agreed; }

  /// The first captured write or port access that was read from the evidence and that the replay
  /// has not made; nullopt where it has made all of them.
  std::optional<std::uint64_t> first_missing() const;

  /// The evidence is over, the run goes on: whatever would have been on the bus throws EvidenceEnd.
  void go_beyond() { beyond_ = true; }

  /// Compares the machine's memory with what the writes on the bus leave (forms without
  /// write-back; empty otherwise), or with `captured`.
  FinalMemory compare_final(const MemoryImage* captured) const;

 private:
  /// How far a captured write may be from its place. Bytes of one instruction stay well within it:
  /// the largest, FXSAVE, is 128 bus words; an interrupt out of virtual-8086 mode is 10.
  static constexpr std::size_t kWriteWindow = 160;
  /// Transactions held back while looking for one of another kind, before that counts as missing.
  static constexpr std::size_t kMaxHeld = std::size_t{1} << 20;

  // verifier_capture.cc: transactions as they come
  /// Makes sure that the next transaction is known. False at the end.
  bool look_ahead() { return ahead_ || read_ahead(); }
  bool read_ahead();
  void will_pull(const BusTransaction& t) const;
  bool pull();
  void pull_through(Position position);
  bool has_position_beyond(Position position) const {
    // Iterations do not order evidence: an interrupted REP starts again from zero.
    return counted_ && pulled_.instruction > position.instruction;
  }
  void sort_in(const BusTransaction& t);
  bool writes_visible(PhysAddr a) const;
  std::uint32_t unspecified_bits(std::span<const std::uint8_t> bytes);
  void match_byte(PhysAddr a, std::uint8_t value, std::uint8_t unspecified, Position now);
  PendingWrite* find_pending(std::uint32_t address, unsigned& byte, Position now);
  bool marks_table_entry(PhysAddr a, std::uint8_t before, std::uint8_t changed) const;
  void check_bit_change(PhysAddr a, bool table_entry, std::uint64_t transaction, Position now);
  bool may_differ(PhysAddr a, std::uint8_t captured) const;
  bool adopt(PendingWrite& pending, unsigned byte, PhysAddr a, std::uint8_t value,
             std::uint8_t unspecified);
  void drop_matched();
  bool evidence_used_up() const;
  bool cut_off(Position now) const;
  void require_order(const PendingWrite& made, PhysAddr a, std::uint8_t value, Position now) const;
  void end_if_used_up(Position now);
  void require_nothing_missing(Position completed);
  void check_lines(Position next);
  bool line_matches(PendingLine& line) const;
  void line_agreed(const BusTransaction& t, std::uint8_t parts);
  bool at_barrier() const;
  bool settle_lines(std::uint32_t window);
  void settle_window(Position now);
  void expire_lines(Position completed, bool in_repeat);
  bool shows_images_alone(const PendingLine& line) const;
  bool adopt_line(PendingLine& line);
  void set_specific(PhysAddr a, std::uint8_t bits, std::uint8_t value);
  void write_agreed(const BusTransaction& t);

  // verifier_blocks.cc: what ran as a block
  bool pull_plain(std::uint64_t first, std::uint64_t last);
  bool is_plain(const BusTransaction& t, std::uint64_t first, std::uint64_t through) const;
  /// Where it is expected: at the beginning of a REP that an event came at, which starts again.
  Position place_of(const BusTransaction& t) const {
    if (!t.has(kPositionKnown)) return {};
    if (t.position.instruction == interrupted_) return {interrupted_, 0};
    return t.position;
  }
  static Position place_before(Position at);
  void pull_reads_at(Position at);
  bool stores_agree(const ExecutedBlock& block, std::uint64_t first);
  bool lines_agree(const ExecutedBlock& block, std::uint64_t first) const;
  bool line_agrees(const ExecutedBlock& block, const PendingLine& line,
                   std::uint32_t instruction) const;
  std::size_t lines_through(std::uint64_t instruction) const;
  bool allows_blocks() const;
  bool expects_nothing(Position now) const { return plain_ && now < expected_; }

  // verifier_repeats.cc: iterations of repeated strings
  bool may_take_iterations(Position first) const;
  std::size_t count_stores(StringIterations& run, std::uint64_t instruction) const;

  std::uint8_t copied_bits(std::size_t byte, Position now) const;
  void excuse_overwritten(PhysAddr a, Position now);
  void follow_flags(const DecodedInstruction& info);
  void follow_untold_flags();
  struct FlagImage {
    std::uint32_t value = 0, undefined = 0;
  };
  std::optional<FlagImage> note_image(PhysAddr a, std::span<const std::uint8_t> bytes);
  void forget_lost_images();
  void excuse_image(PhysAddr a, const FlagImage& old, Position now);
  bool is_image(PhysAddr a, std::uint8_t captured) const;
  void check_instruction_start(const ExecutedInstruction& e, Position now);
  void follow_reads(Position now);
  void begin_reads(Position now);

  // verifier_ports.cc
  void match_port(const PortUse& use, Position now);
  void begin_port(Position now);
  void expect_port(bool begun);
  void check_special(BusOp op, Position now);
  bool made_by_specific_store() const;
  bool is_waived(std::uint64_t transaction) const;
  /// Every transaction held back while looking for one of another kind than these.
  std::size_t held() const { return writes_.size() + ports_.waiting() + starts_.waiting(); }
  static void require(const std::optional<Mismatch>& mismatch, Position now) {
    if (mismatch) stop_with(*mismatch, now);
  }

  const Recording& recording_;
  std::unique_ptr<EvidenceReader> evidence_;
  VerifierOptions options_;
  Machine* machine_ = nullptr;
  LoneChanges lone_changes_;
  std::unique_ptr<ReadCheck> reads_;  ///< null where reads are not compared
  bool plain_ = false;
  /// A line is compared as one, however it went over the bus: no transaction of it is of interest.
  bool joins_lines_ = false;
  /// Of a plain comparison: images of EFLAGS that events stored, with bits that no manual tells, by
  /// their addresses.
  std::unordered_map<std::uint32_t, FlagImage> flag_images_;
  Position expected_;  ///< as the machine was told last
  /// An event came at this instruction: a REP there starts again from zero.
  std::uint64_t interrupted_ = ~std::uint64_t{0};
  std::size_t writes_made_ = 0;  ///< of writes_: found by agrees() for the next agreed()
  FinalMemoryCheck final_memory_;
};

}  // namespace citcat
