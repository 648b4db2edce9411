#pragma once
// The one place from which a machine tells what it does: first those who want it unjudged, then the
// judge, then the corrector's corrections are made, then everybody else is told.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "replay/machine/listeners.h"
#include "replay/machine/memory.h"
#include "replay/machine/run_control.h"

namespace citcat {

/// How much of plain code - neither events nor instructions with effects beyond memory and registers
/// - is to be told. Each includes those before it.
enum class Detail : std::uint8_t {
  nothing,
  instructions,  ///< instruction() or block()
  comparison,    ///< of blocks in which something is expected, what they read and stored: agreed()
  accesses,      ///< read(), fetch(), write() and mapping() too
};

/// Of one machine. Throws what the judge throws, and RunEnded where the run is ended by what it is
/// told just now.
class Audience {
 public:
  /// Corrections are made in `memory`, which must outlive the object, as what is listed must.
  Audience(const Listeners& listeners, Memory& memory);

  /// What is to be told of plain code at most.
  Detail detail() const { return detail_; }
  bool wants_reads() const { return wants_reads_; }
  /// Somebody besides the judge is told instructions.
  bool hears_instructions() const { return !instructions_.empty(); }
  /// Of the only observer that is told of instructions, if it takes them so.
  KtRecords* records() const {
    return instructions_.size() == 1 ? instructions_[0]->records() : nullptr;
  }
  /// Null where there is none, or nothing is judged for now.
  BlockJudge* judge() const { return judge_; }
  /// The judge is told nothing as long as `on` is false. Only for one that does not judge blocks.
  void set_judged(bool on) { judge_ = on ? listeners_.judge() : nullptr; }
  RunControl& control() { return control_; }
  const RunControl& control() const { return control_; }
  /// Nothing from this instruction on may run as part of a block.
  std::uint64_t block_limit() const;

  /// The machine has its state.
  void introduce(Machine& machine);
  /// A correction in memory, here and now.
  void correct(PhysAddr captured, std::span<const std::uint8_t> bytes) {
    memory_.external_write(captured, bytes);
  }

  /// An instruction or iteration is complete but for being counted. `judged`: the judge is told.
  void instruction(const ExecutedInstruction& e, Position now, bool judged);
  void iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                  Position now);
  /// Not to the judge.
  void block(const BlockCode& block, const std::uint32_t* addresses, Position first) {
    if (instructions_.size() == 1) [[likely]] {
      return instructions_[0]->block({block, addresses, note_of(block, 0)}, first);
    }
    block_to_all(block, addresses, first);
  }
  void fetch(PhysAddr a, std::uint32_t size, Position now);
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now);
  /// `judged`: the judge is told.
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind, Position now,
             bool judged = true);
  void mapping(LinearAddr page, PhysAddr frame, Position now);
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now);
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now);
  void delivered(const DeliveredEvent& event, Position now);
  void external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now);
  void halted(Position now);
  void cache_flushed(bool write_back, Position now);
  void shutdown(Position now);
  void address_space(std::uint32_t cr3, Position now);
  /// Ends the run if somebody has asked for that just now.
  void end_if_asked(Position now) {
    if (control_.is_asked(now)) throw RunEnded{};
  }

 private:
  struct Listener {
    Observer* observer = nullptr;
    Wants wants;
  };
  template <class F>
  void tell(Position now, bool Wants::*what, bool judged, F&& call);
  template <class F>
  void tell_all(Position now, F&& call);
  void correct_store(PhysAddr a, std::size_t size, Position now);
  void block_to_all(const BlockCode& block, const std::uint32_t* addresses, Position first);
  /// A block that is not going to come again has none.
  static std::unique_ptr<BlockNote>* note_of(const BlockCode& block, std::size_t observer) {
    return block.comes_again() ? &block.notes().of(observer) : nullptr;
  }

  Listeners listeners_;
  Memory& memory_;
  BlockJudge* judge_;
  std::vector<Listener> early_, late_;   ///< told before it is judged, and behind that
  std::vector<Observer*> instructions_;  ///< who is told of blocks
  Detail detail_ = Detail::nothing;
  bool wants_reads_ = false;
  RunControl control_;
};

}  // namespace citcat
