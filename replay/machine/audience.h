#pragma once
// The one place from which a machine reports what it does: first to observers that want it
// unjudged, then to the judge; then corrections are made, and then all other observers are told.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "replay/machine/batch_listener.h"
#include "replay/machine/listeners.h"
#include "replay/machine/memory.h"
#include "replay/machine/run_control.h"

namespace citcat {

/// How much of plain code - neither events nor instructions with effects beyond memory and
/// registers - is to be told. Each includes those before it.
enum class Detail : std::uint8_t {
  nothing,
  instructions,  ///< instruction() or block()
  comparison,    ///< of blocks in which something is expected, what they read and stored: agreed()
  accesses,      ///< read(), fetch(), write() and mapping() too
};

/// The listeners of one machine. Throws what the judge throws, and RunEnded where a listener ends
/// the run.
class Audience {
 public:
  /// Corrections are made in `memory`, which must outlive the object, as what is listed must.
  Audience(const Listeners& listeners, Memory& memory);

  /// The most that has to be told of plain code.
  Detail detail() const { return detail_; }
  bool wants_reads() const { return wants_reads_; }
  /// Whether somebody wants to know what blocks read and store (Wants::references).
  bool wants_references() const { return wants_references_; }
  /// Whether those that somebody wants are stores alone, and nobody is told of blocks but for them.
  bool wants_only_stores() const { return wants_references_ && !wants_more_than_stores_; }

  /// What is wanted of plain code for now.
  struct Attending {
    std::uint64_t until = ~std::uint64_t{0};  ///< then attend() is to be called again
    bool blocks = false;                      ///< somebody is told of blocks
    bool references = false;                  ///< and of what they read and store,
    bool counts = false;                      ///< somebody is told how often each ran
    bool passes = false;                      ///< somebody is not told of blocks,
    bool stores = false;                      ///< but of what they store, and nobody of blocks
    std::uint32_t trail = 0;                  ///< of what passes, the last so many instructions
  };
  /// Asks all observers how plain code is to be told from the instruction on. `keeps_stores`:
  /// stores() may be called in place of block().
  const Attending& attend(std::uint64_t instruction, bool keeps_stores);
  const Attending& attending() const { return attending_; }
  /// To those who are not told of blocks. As Observer::passed().
  void passed(std::uint64_t from, std::uint64_t to);
  /// To those who have asked for it. As Observer::trailed().
  void trailed(const BlockCode& block, const std::uint32_t* addresses, Position first);
  /// Whether the judge is among those who want reads.
  bool judges_reads() const { return judges_reads_; }
  /// Whether anybody besides the judge is told instructions.
  bool hears_instructions() const { return !instructions_.empty(); }
  /// The KT records of the observer of instructions, if there is only one and it takes records.
  KtRecords* records() const {
    return instructions_.size() == 1 ? instructions_[0]->records() : nullptr;
  }
  /// Null where there is none, or while nothing is judged.
  BlockJudge* judge() const { return judge_; }
  /// The judge is told nothing as long as `on` is false. Only for one that does not judge blocks.
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

  /// An instruction or iteration is complete but not counted yet. `judged`: the judge is told, too.
  void instruction(const ExecutedInstruction& e, Position now, bool judged);
  void iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                  Position now);
  /// One of those, where each is told.
  void iteration(const ExecutedInstruction& e, Position now);
  /// Not to the judge.
  void block(const BlockCode& block, const std::uint32_t* addresses, Position first,
             std::span<const DataReference> references = {}) {
    if (told_.size() == 1) [[likely]] {
      const std::size_t one = told_[0];
      return instructions_[one]->block({block, addresses, note_of(block, one), references}, first);
    }
    block_to_all(block, addresses, first, references);
  }
  /// Whether blocks() may be called: there is one who is told of blocks, and takes them so.
  bool takes_batches() const { return batches_ != nullptr; }
  /// A block as that one is told of it.
  ExecutedBlock as_told(const BlockCode& block, const std::uint32_t* addresses,
                        std::span<const DataReference> references) const {
    return {block, addresses, note_of(block, told_[0]), references};
  }
  /// Not to the judge. As BatchListener::blocks().
  void blocks(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t count) {
    batches_->blocks(blocks, first, count);
  }
  /// Not to the judge, and only to those who are not told of blocks. As StoreListener::stores().
  void stores(std::span<const PlainStore> stores, Position from);
  /// Not to the judge, and only to those who take counts.
  void counted(const BlockCode& block, std::uint64_t executions);
  /// `judged`: the judge is told, if it wants reads.
  void fetch(PhysAddr a, std::uint32_t size, Position now, bool judged = true);
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now, bool judged = true);
  /// To the judge alone.
  void read_to_judge(PhysAddr a, std::uint32_t size, AccessKind kind, Position now);
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
  void attend_blocks(std::size_t listener);
  template <class F>
  void tell(Position now, bool Wants::*what, bool judged, F&& call);
  template <class F>
  void tell_all(Position now, F&& call);
  void correct_store(PhysAddr a, std::size_t size, Position now);
  void block_to_all(const BlockCode& block, const std::uint32_t* addresses, Position first,
                    std::span<const DataReference> references);
  /// A block that will not run again has no notes.
  static std::unique_ptr<BlockNote>* note_of(const BlockCode& block, std::size_t observer) {
    return block.comes_again() ? &block.notes().of(observer) : nullptr;
  }

  Listeners listeners_;
  Memory& memory_;
  BlockJudge* judge_;
  std::vector<Listener> early_, late_;    ///< told before it is judged, and behind that
  std::vector<Observer*> instructions_;   ///< who is told of plain code
  std::vector<Wants> wants_;              ///< of each of them
  std::vector<BatchListener*> batchers_;  ///< the same; null where it takes one at a time
  std::vector<StoreListener*> storers_;   ///< the same; null where it does not take stores
  std::vector<Attention> attention_;      ///< of each, for now
  std::vector<std::size_t> told_;         ///< who is told of blocks for now
  Attending attending_;
  BatchListener* batches_ = nullptr;  ///< the only one of them, where it takes several at a time
  Detail detail_ = Detail::nothing;
  bool wants_reads_ = false;
  bool wants_references_ = false;
  bool wants_more_than_stores_ = false;
  bool judges_reads_ = false;
  RunControl control_;
};

}  // namespace citcat
