#pragma once
// Compares what the replay reads with what the bus shows being read.
//
// A wrong value that has not reached a write yet shows itself early this way: as a read at another
// address, a read too many or too few, code fetched from elsewhere, or a line filled with bytes
// that the replay's memory does not hold. Without a cache every read is on the bus; with one, each
// fill must be of a line that its instruction touches.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "events/recording.h"
#include "formats/memory/number_set.h"
#include "formats/memory/short_queue.h"
#include "replay/captured/captured_memory.h"
#include "replay/captured/evidence_ahead.h"
#include "replay/machine/instruction_numbers.h"
#include "replay/machine/memory.h"
#include "replay/machine/observer.h"
#include "replay/machine/string_iterations.h"
#include "replay/verify/block_memory.h"
#include "replay/verify/mismatch.h"

namespace citcat {

/// How far a comparison of reads has come, apart from what the capture has shown memory to hold.
struct ReadMatcherProgress {
  struct Access {
    PhysAddr address;
    std::uint32_t size = 0;
    AccessKind kind = AccessKind::data;
  };
  struct Pending {
    BusTransaction t;         ///< with the bytes that the capture has shown, where `shown`
    std::uint32_t known = 0;  ///< bit i: byte i of them is known
    bool shown = false;       ///< else they still are what memory_ holds
    bool unwritten = false;   ///< they are what the image holds
    bool touched = false;     ///< but memory held something else then
    bool held = false;        ///< code that memory held before the instruction stored anything
    std::uint8_t parts = 1;   ///< transactions of the capture that it is
  };
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  static constexpr std::uint32_t kAnyIteration = ~std::uint32_t{0};

  std::uint64_t instruction_ = kNone;
  std::uint32_t iteration_ = kAnyIteration;
  std::uint64_t split_fault_ = kNone;  ///< the last that faulted where a page begins
  std::size_t code_held_ = 0;          ///< so many of pending_, the first ones, are held or no code
  ShortQueue<Pending> pending_;        ///< not settled yet
  std::vector<Access> fetches_, reads_, stores_;  ///< of instruction_
  ShortQueue<Access> recent_code_;                ///< fetched on the bus last
  /// The last of these that brought one range, each what follows the one before.
  struct Straight {
    PhysAddr begin;
    std::uint32_t bytes = 0;
    std::size_t fetches = 0;
    bool holds(PhysAddr a, std::uint32_t size) const {
      return a.is_within32(begin, bytes) && size <= bytes - a.minus32(begin);
    }
  };
  Straight straight_code_;
  NumberSet table_frames_;  ///< page directories and tables
  std::uint64_t compared_ = 0;
};

class ReadMatcher : private ReadMatcherProgress {
 public:
  using ReadMatcherProgress::kAnyIteration;
  using ReadMatcherProgress::kNone;
  /// `recording` and `schedule` must outlive the matcher. Only captures whose memory traffic is
  /// counted are compared; of others nothing is asked. `plain`: what a Mismatch shows is of no
  /// interest. Without `schedule` what reads found in memory is told with them, by the second
  /// expect(), and the bytes of writes need not be.
  ReadMatcher(const Recording& recording, const Schedule* schedule, bool plain);

  // The captured side, in bus order.
  /// `t` is so many transactions of the capture, joined.
  void expect(const BusTransaction& t, std::uint8_t parts = 1);
  void expect(const BusTransaction& t, const CapturedContext& context);
  /// `t`, which is memory traffic, comes before long: what is needed for it is fetched from memory
  /// ahead.
  void will_capture(const BusTransaction& t) const {
    if (!uncached_ && memory_) memory_->prefetch(t);
  }
  void captured_write(const BusTransaction& t) { set_memory(t.address, t.bytes()); }

  // The replayed side, in program order. `memory` is the replay's, as it is before the access.
  void fetched(PhysAddr a, std::uint32_t size, const Memory& memory);
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, const Memory& memory);
  void stored(PhysAddr a, std::uint32_t size, const Memory& memory);

  /// These were fetched before the first instruction that is compared.
  void fetched_before(std::span<const BusTransaction> fetches) {
    for (const BusTransaction& t : fetches) note_fetch(t);
  }
  /// The replay is of this machine.
  void judges(const Machine& machine) { machine_ = &machine; }
  void address_space(AddressSpaceId cr3) { table_frames_.insert(cr3 / kPageSize); }
  /// A page table is here, read where nothing is expected.
  void table(PhysAddr a) { table_frames_.insert(a.page()); }

  /// What lies at `linear` was refused to instruction(). No manual says whether it has read by
  /// then what its operand has in the page before.
  void page_fault(LinearAddr linear) {
    if (linear.offset_in_page() == 0) split_fault_ = instruction_;
  }

  /// The accesses that follow are of this iteration of a REP, or of any.
  void reach(std::uint32_t iteration) { iteration_ = iteration; }
  // Many iterations of a REP at once, in place of telling what each reads and stores. `memory` is
  // the replay's before them.
  std::uint32_t plain_iterations(const StringIterations& run, const Memory& memory);
  void pass_iterations(const StringIterations& run, const Memory& memory);
  /// The instruction whose accesses are being collected; kNone before the first.
  std::uint64_t instruction() const { return instruction_; }
  /// Something may have to be compared of what was read before instruction `next`.
  bool waits_before(std::uint64_t next) const {
    return uncached_ || (!pending_.empty() && pending_.front().t.position.instruction < next);
  }
  /// Goes on to `next`: nothing waits before it, on either side.
  void begin(std::uint64_t next) {
    fetches_.clear();
    reads_.clear();
    stores_.clear();
    code_held_ = 0;
    instruction_ = next;
  }
  /// Compares the accesses of instruction(), which must be complete on both sides, and goes on to
  /// `next`.
  std::optional<Mismatch> settle(std::uint64_t next, const Memory& memory);
  /// Goes on without comparing: the capture does not reach the end of instruction().
  void skip(std::uint64_t next);

  /// Whether all that the bus shows being read by the instructions of `block`, the first at
  /// `first`, is plainly what they read. `after` is the replay's memory after it.
  bool agrees(const JudgedBlock& block, std::uint64_t first, const BlockMemory& after);
  /// Which instructions from number `first` on reads of data wait for: as
  /// BlockJudge::reads_of_interest().
  InstructionNumbers pending_data(std::uint64_t first) const;
  /// After the last instruction before `end` for which something waits; 0 where nothing does.
  std::uint64_t last_due_before(std::uint64_t end) const {
    for (std::size_t i = pending_.size(); i != 0; --i) {
      const std::uint64_t instruction = pending_[i - 1].t.position.instruction;
      if (instruction < end) return instruction + 1;
    }
    return 0;
  }
  /// They agree. As far as compared() before the last of them, returns it.
  std::uint64_t pass_block(std::uint64_t last);

  /// Transactions of the capture; none that was passed over.
  std::uint64_t compared() const { return compared_; }
  /// What the bus shows being read next that has not been settled; null where nothing waits.
  const BusTransaction* due() const { return pending_.empty() ? nullptr : &pending_.front().t; }

  /// The comparison at one moment, to come back to. Not without a schedule.
  struct Checkpoint {
    ReadMatcherProgress progress;
    CapturedMemory::Checkpoint memory;
  };
  Checkpoint checkpoint() const { return {*this, memory_->checkpoint()}; }
  void restore(const Checkpoint& checkpoint) {
    static_cast<ReadMatcherProgress&>(*this) = checkpoint.progress;
    memory_->restore(checkpoint.memory);
  }
  /// Without a schedule: how far it has come, for another matcher to go on from there.
  const ReadMatcherProgress& progress() const { return *this; }
  void go_on_from(const ReadMatcherProgress& progress) {
    static_cast<ReadMatcherProgress&>(*this) = progress;
  }
  /// What the capture has shown memory to hold was wrong: it is `bytes`.
  void correct(PhysAddr a, std::span<const std::uint8_t> bytes) { set_memory(a, bytes); }

 private:
  /// Something of this instruction is still to be compared.
  bool expects() const {
    return uncached_ ||
           (!pending_.empty() && pending_.front().t.position.instruction <= instruction_);
  }
  bool is_walk_passed(const Pending& p) const;
  void look_at_code(const Memory& memory);
  void set_memory(PhysAddr a, std::span<const std::uint8_t> bytes);
  void show_waiting(FrameNumber frame);
  /// Adds what the capture has shown memory to hold so far.
  void show_memory(Pending& p) const {
    p.shown = true;
    p.known = show(memory_->image(), p.t);
  }
  bool is_unwritten(Pending& p, const Memory& memory) const;
  void touch(PhysAddr a, std::uint32_t size, bool code, bool store, const Memory& memory);
  bool equals(Pending& p, const Memory& memory) const;
  /// Returns of how many transactions of the capture they are.
  std::uint64_t drop_before(std::uint64_t instruction);
  /// Belongs to none of the accesses now. The one after is left a chance: should the monitor count
  /// otherwise, the comparison that is not plain has the last word.
  bool is_later(std::uint32_t iteration) const {
    return iteration > iteration_ && iteration - iteration_ > 1;
  }
  std::uint32_t first_concerned(const Pending& p) const;
  bool is_read_in_place(const Pending& p, const StringIterations& run) const;
  bool follows_code(const Pending& p) const;
  bool follows_code(const Pending& p, PhysAddr fetched) const;
  bool agrees(const Pending& p, const BlockMemory& block, std::uint32_t instruction) const;
  bool agrees_with_fills(const JudgedBlock& block, std::uint64_t first,
                         const BlockMemory& after) const;
  bool agrees_uncached(const JudgedBlock& block, std::uint64_t first, const BlockMemory& after);
  bool equals_before(const Pending& p, const BlockMemory& block, std::uint32_t instruction) const;
  /// What a fill is of. The parts of a line are one.
  std::pair<PhysAddr, std::uint32_t> filled(const BusTransaction& t) const {
    if (!t.has(kLine)) return {t.address, t.size};
    return {t.address.begin_of(line_bytes_), line_bytes_};
  }
  std::optional<Mismatch> settle_fills(const Memory& memory);
  std::optional<Mismatch> settle_uncached_data();
  std::optional<Mismatch> settle_uncached_code();
  bool was_fetched(PhysAddr a, std::uint32_t size, std::size_t oldest) const;
  void note_fetch(const BusTransaction& t) {
    recent_code_.push_back({t.address, t.size, AccessKind::data});
    if (t.address != straight_code_.begin.plus32(straight_code_.bytes))
      straight_code_ = {t.address};
    straight_code_.bytes += t.size;
    ++straight_code_.fetches;
  }
  void forget_old_fetches();
  std::optional<Mismatch> missing_read(PhysAddr at) const;
  std::optional<Mismatch> extra_read(PhysAddr at) const;
  bool is_table(PhysAddr a) const;

  const Machine* machine_ = nullptr;
  const Recording& recording_;
  bool uncached_ = false;
  bool plain_ = false;
  bool data_is_shown_ = true;  ///< pending reads of data have the bytes that they read
  std::uint32_t line_bytes_ = 0;
  std::optional<CapturedMemory> memory_;                 ///< where a schedule was given
  std::vector<std::uint64_t> bus_bytes_, replay_bytes_;  ///< kept for their capacity
};

}  // namespace citcat
