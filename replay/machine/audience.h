#pragma once
// The one place from which a machine reports what it does: first to observers that want it
// unjudged, then to the judge; then corrections are made, and then all other observers are
// notified.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "replay/machine/executed_block.h"
#include "replay/machine/listeners.h"
#include "replay/machine/memory.h"
#include "replay/machine/run_control.h"

namespace citcat {

/// The joint interest of several observers in ordinary code.
class JointInterest {
 public:
  void add(const Interest& interest) {
    until = std::min(until, interest.until);
    if (interest.code == Detail::trail) trail = std::max(trail, interest.trail);
    details_ |= bit(interest.code);
  }
  /// Those who want stores receive blocks with references.
  void take_blocks_for_stores() {
    if (stores()) details_ = (details_ & ~bit(Detail::stores)) | bit(Detail::references);
  }
  /// Somebody receives blocks,
  bool blocks() const {
    return has(bit(Detail::records) | bit(Detail::blocks) | bit(Detail::accesses) |
               bit(Detail::references));
  }
  /// and with them what they read and stored; or has room for records.
  bool references() const { return has(bit(Detail::references)); }
  bool accesses() const { return has(bit(Detail::accesses)); }
  bool records() const { return has(bit(Detail::records)); }
  /// Somebody receives no blocks,
  bool passes() const {
    return has(bit(Detail::nothing) | bit(Detail::stores) | bit(Detail::counts) |
               bit(Detail::trail));
  }
  /// but how often each ran; or what was stored.
  bool counts() const { return has(bit(Detail::counts) | bit(Detail::trail)); }
  bool stores() const { return has(bit(Detail::stores)); }

  std::uint64_t until = ~std::uint64_t{0};  ///< then they are to be asked again
  std::uint32_t trail = 0;                  ///< of what passes, the last so many instructions

 private:
  static constexpr unsigned bit(Detail d) { return 1u << static_cast<unsigned>(d); }
  bool has(unsigned details) const { return (details_ & details) != 0; }

  unsigned details_ = 0;
};

/// The listeners of one machine. Throws what the judge throws, and RunEnded where a listener ends
/// the run.
class Audience {
 public:
  /// Corrections are made in `memory`, which must outlive the object, as what is listed must.
  Audience(const Listeners& listeners, Memory& memory);

  /// Ordinary code must be reported access by access.
  bool wants_each_access() const { return each_access_; }
  bool wants_reads() const { return wants_reads_; }
  /// Whether somebody wants to know what blocks read and store.
  bool wants_references() const { return wants_references_; }
  /// Whether nobody wants to know what page walks read within blocks.
  bool wants_no_walks() const { return !wants_walks_; }
  /// Whether somebody wants to know what code at this instruction reads or stores. Where that may
  /// have changed since ask(), somebody may.
  bool wants_references_at(std::uint64_t instruction) const {
    const bool is_known = instruction >= asked_at_ && instruction < joint_.until;
    return wants_references_ &&
           (!is_known || joint_.references() || joint_.accesses() || joint_.stores());
  }
  /// The run goes on elsewhere, or for others.
  void forget_answer() { asked_at_ = ~std::uint64_t{0}; }

  /// Asks all observers what they want of ordinary code from the instruction on. `keeps_stores`:
  /// stored() may be called in place of ran().
  const JointInterest& ask(std::uint64_t instruction, bool keeps_stores);
  /// The last answer.
  const JointInterest& interest() const { return joint_; }
  /// The counts from here on are for others than those before, which must be reported by now.
  bool counts_for_others() const;
  void begin_counts();
  /// Whether the judge is among those who want reads.
  bool judges_reads() const { return judges_reads_; }
  /// Whether anybody besides the judge receives instructions.
  bool hears_instructions() const { return !followers_.empty(); }
  /// Null where there is none, or while nothing is judged.
  BlockJudge* judge() const { return judge_; }
  /// The judge is not called as long as `on` is false. Only for one that does not judge blocks.
  void set_judged(bool on) { judge_ = on ? listeners_.judge() : nullptr; }
  RunControl& control() { return control_; }
  const RunControl& control() const { return control_; }
  /// Nothing from this instruction on may run as part of a block.
  std::uint64_t block_limit() const;

  /// The machine has its state.
  void introduce(Machine& machine);
  /// Makes a correction in memory at once.
  void correct(PhysAddr captured, std::span<const std::uint8_t> bytes) {
    memory_.external_write(captured, bytes);
  }

  /// An instruction or iteration is complete but not counted yet. `judged`: the judge is called,
  /// too.
  void instruction(const ExecutedInstruction& e, Position now, bool judged);
  void iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                  Position now);
  /// One of those, if each is reported by itself.
  void iteration(const ExecutedInstruction& e, Position now);
  // What became of ordinary code, as Observer has it: each to those who have asked for it, and not
  // to the judge.
  void ran(std::span<ExecutedBlock> blocks, Position first, std::uint32_t count) {
    for (const std::size_t i : told_) {
      for (ExecutedBlock& b : blocks) b.use_notes_of(i);
      followers_[i].observer->ran(blocks, first, count);
    }
  }
  void ran(ExecutedBlock block, Position first) { ran({&block, 1}, first, block.count()); }
  void trailed(ExecutedBlock block, Position first);
  /// Those who want a trail receive instructions from `trail` on by trailed().
  void passed(std::uint64_t from, std::uint64_t to, std::uint64_t trail);
  void stored(std::span<const PlainStore> stores, Position from);
  void counted(const BlockCode& block, std::uint64_t executions);
  RecordRoom record_room(Position now) { return followers_.front().observer->record_room(now); }
  void recorded(std::size_t bytes, std::uint64_t instructions) {
    followers_.front().observer->recorded(bytes, instructions);
  }
  /// `judged`: the judge is called, if it wants reads.
  void fetch(PhysAddr a, std::uint32_t size, Position now, bool judged = true);
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now, bool judged = true);
  /// To the judge alone.
  void read_to_judge(PhysAddr a, std::uint32_t size, AccessKind kind, Position now);
  /// `judged`: the judge is called.
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind, Position now,
             bool judged = true);
  void mapping(LinearAddr page, PhysAddr frame, Position now);
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now);
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now);
  void delivered(const DeliveredEvent& event, Position now);
  void external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now);
  void translation_dropped(LinearAddr page, Position now);
  void halted(Position now);
  void cache_flushed(bool write_back, Position now);
  void shutdown(Position now);
  void address_space(AddressSpaceId cr3, Position now);
  /// Ends the run if somebody has asked for that just now.
  void end_if_asked(Position now) {
    if (control_.is_asked(now)) throw RunEnded{};
  }

 private:
  struct Listener {
    Observer* observer = nullptr;
    Interest interest;
  };
  /// One who receives ordinary code.
  struct Follower {
    Observer* observer = nullptr;
    Detail now = Detail::references;  ///< what it wants
    bool counts = false;              ///< it receives counts
    bool wants_counts() const { return now == Detail::counts || now == Detail::trail; }
  };
  template <class F>
  void tell(Position now, bool Interest::*what, bool judged, F&& call);
  template <class F>
  void tell_all(Position now, F&& call);
  void correct_store(PhysAddr a, std::size_t size, Position now);

  Listeners listeners_;
  Memory& memory_;
  BlockJudge* judge_;
  std::vector<Listener> early_, late_;  ///< called before the judge, and after it
  std::vector<Follower> followers_;
  std::vector<std::size_t> told_;  ///< numbers of those that receive blocks for now
  JointInterest joint_;
  std::uint64_t asked_at_ = ~std::uint64_t{0};  ///< ask() was called for this instruction last
  bool each_access_ = false;
  bool wants_reads_ = false;
  bool wants_references_ = false;
  bool wants_walks_ = false;
  bool judges_reads_ = false;
  RunControl control_;
};

}  // namespace citcat
