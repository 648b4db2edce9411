#pragma once
// The fast tier: plain code runs in an interpreter of our own.
//
// It takes the processor's state from the engine, runs as many instructions as it can, and gives it
// back exactly as it is before the next one. What it does not make - rare instructions, whatever
// faults, changes modes or touches devices - is left to the engine and the units of the machine,
// and so is any access whose page walk has more effect than a TLB entry.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "replay/machine/cpu_context.h"
#include "replay/machine/expectation.h"
#include "replay/machine/fast/block_store.h"
#include "replay/machine/fast/block_trail.h"
#include "replay/machine/fast/fast_state.h"
#include "replay/machine/fast/string_loop.h"
#include "replay/machine/in_flight.h"
#include "replay/machine/kt_records.h"
#include "replay/machine/store_trap.h"

namespace citcat {

class DebugUnit;

/// Between runs of the engine. Owned by the machine.
class FastTier final : public StoreWatcher, private fast::MissResolver {
 public:
  /// All must outlive the object.
  FastTier(CpuContext& cpu, InFlight& flight, Expectation& expectation, DebugUnit& debug);

  /// Runs from where the processor is, up to CpuContext::until, as far as it can.
  void run();

  /// Memory has changed otherwise than by what runs here.
  void stored(PhysAddr at, std::uint32_t size) override;
  /// The Mmu lost a translation, or may answer otherwise from now on.
  void forget_translations() { stale_ = true; }
  const fast::BlockStore& blocks() const { return store_; }
  /// Tells what was only counted so far.
  void tell_counts();
  /// A page walk read that entry of a table. For those who are told references: within a block it
  /// is told with it, else now.
  void note_walk(PhysAddr entry, std::uint32_t size);

 private:
  static constexpr std::uint64_t kNothing = ~std::uint64_t{0};

  bool applies();
  bool keeps_upper_halves() const;
  void begin();
  void end();
  void take_segments();
  void take_segments_of_64_bits();
  void take_shape();
  std::uint64_t general_register(int i) const {
    return shape_.bits64 ? cpu_.engine.wide().gpr(i) : cpu_.engine.gpr(i);
  }
  int general_registers() const { return shape_.bits64 ? 16 : 8; }
  void forget_pages();
  void check_pages();
  std::optional<Translation> translate(LinearAddr linear, Access access);
  /// The supervisor, the user, and the supervisor who reaches the user's pages by EFLAGS.AC.
  static constexpr std::size_t kPrivileges = 3;
  /// Which of `states_` is in use.
  std::size_t privilege() const {
    return s_ == states_[0].get() ? 0 : s_ == states_[1].get() ? 1 : 2;
  }
  fast::Policy policy_for(fast::Keep keep) const { return {keep, exact_}; }
  void set_trap();
  std::uint64_t position() const { return limit_ - static_cast<std::uint64_t>(s_->left); }

  /// How a stretch of blocks came to its end.
  enum class Stretch : std::uint8_t {
    ended,     ///< more can be run
    too_long,  ///< nothing ran: the next block goes beyond the limit
    left,      ///< what is next has to be looked at elsewhere
  };
  void run_quietly();
  void run_judged();
  Stretch run_stretch(bool whole_blocks);
  Stretch run_recorded(const KtRecords::Room& room, bool whole_blocks);
  void chain(fast::Policy policy);
  void chain_logged(fast::Policy policy);
  void attend();
  bool looks_for_trap() const;
  fast::Policy passing_policy() const;
  fast::Policy with_trap(fast::Policy policy) const;
  std::int64_t room_to_ask() const;
  Stretch run_passing(bool whole_blocks);
  Stretch run_passing_blocks(const fast::Block& block, fast::Policy policy, std::int64_t may_run);
  void uncount_rest();
  void note_batch(std::uint32_t of_last, std::uint64_t first);
  void note_block(const fast::Block& block, std::uint32_t count, std::uint64_t first,
                  const std::uint8_t* area);
  void keep_trail();
  void keep_trail_of_batch();
  void keep_in_trail(const fast::Block& block, std::uint32_t count, std::uint64_t first,
                     const std::uint8_t* area);
  Stretch run_told(bool whole_blocks);
  Stretch run_told_batch(const fast::Block& block, fast::Policy policy);
  struct Undo;
  bool judge_blocks();
  BlockJudge::BatchRoom ask_judge(const fast::Block& block, std::uint64_t first);
  void run_batch(const fast::Block& block, std::uint32_t may_run, std::uint32_t due);
  bool is_quiet_string(const fast::Block& block);
  bool judge(std::uint32_t done, std::uint64_t first);
  std::span<const BlockStore> gather_accesses(const InstructionNumbers& wanted);
  void take_back(const Undo& undo, std::uint64_t first, std::uint32_t done);
  std::uint64_t quiet_end() const;

  void make_room();
  void forget_ways(std::size_t privilege);
  const fast::Block* find_block(std::uint64_t eip, fast::Policy policy);
  const fast::Block* look_up_block(std::uint64_t eip, fast::Policy policy);
  bool find_code_page(LinearAddr linear, PhysAddr& frame);
  void run_block(const fast::Block& block, std::uint8_t* area);
  Stretch after_block(fast::Policy policy, std::uint64_t passed_from = kNothing);
  Stretch behind(const fast::Block& block, fast::Policy policy);
  void link(const fast::Block& block, fast::Policy policy);
  std::uint32_t settle_block();
  bool is_noted(const fast::Block& block) const;
  void note_flags(const fast::Block& block, std::uint32_t count);
  void tell_block(const fast::Block& block, std::uint32_t count, std::uint64_t first,
                  const std::uint8_t* area, std::span<const DataReference> references = {});
  void tell_batch(std::uint32_t of_last, std::uint64_t first);
  void tell_blocks(std::uint32_t blocks, std::uint64_t first);
  /// Where the accesses of the batch's block `number` end in State::log.
  std::uint32_t end_of_log(std::uint32_t number) const {
    return number + 1 < s_->batched ? s_->batch[number + 1].logged : s_->logged;
  }
  std::span<const DataReference> references_of(std::uint32_t number, std::uint32_t count);
  void tell_walks();
  void tell_string_fetch(const fast::Block& block);
  Stretch run_string(const fast::Block& block);
  void tell_iterations(const DecodedInstruction& info,
                       const std::array<fast::StringLoop::Operand, 2>& first, std::uint32_t count,
                       std::int32_t step);
  fast::StringPage find_string_page(LinearAddr linear, bool write);
  void note_string_store(PhysAddr at, std::uint32_t size, const PhysAddr* from);

  Answer resolve(fast::State& s, const fast::Op* op) override;
  bool store_made(fast::State& s) override;
  bool fill(LinearAddr linear, bool write);
  bool code_is_there(const fast::Block& block);

  CpuContext& cpu_;
  InFlight& flight_;
  Expectation& expectation_;
  DebugUnit& debug_;
  fast::BlockStore store_;
  fast::StringLoop strings_;
  const bool exact_;          ///< memory is looked at byte by byte
  KtRecords* const records_;  ///< may be null
  StoreTrap* const trap_;     ///< the judge's; null where it sets none
  fast::Policy policy_;       ///< where nothing is expected, and blocks are told
  std::array<std::unique_ptr<fast::State>, kPrivileges> states_;
  fast::State* s_ = nullptr;  ///< the one in use
  fast::CodeShape shape_;
  std::array<fast::CodeShape, kPrivileges> shapes_;  ///< of the blocks in State::jumps
  std::optional<fast::Policy> chained_logged_;       ///< and in State::batch_jumps
  std::optional<fast::Policy> chained_;              ///< of the blocks in State::jumps
  /// Blocks found last, for the policies that do not find their way by themselves.
  struct Known {
    const fast::Block* block = &fast::kNowhere;
    fast::Policy policy;
  };
  using KnownBlocks = std::array<Known, 2 * fast::kJumps>;
  /// Shapes as in `shapes_`.
  std::vector<KnownBlocks> known_ = std::vector<KnownBlocks>(kPrivileges);
  std::uint32_t epoch_ = 0, mask_epoch_ = 0;
  bool stale_ = true;
  std::uint64_t eip_ = 0;
  /// What find_block() found last, to be asked for once more before anything else is done.
  struct Found {
    const fast::Block* block = nullptr;
    fast::Policy policy;
  } found_;
  std::uint32_t iteration_ = 0;      ///< of the string instruction there
  std::uint64_t limit_ = 0;          ///< of this run: first instruction not made
  fast::BlockTrail trail_;           ///< of what nobody was told of block by block
  std::uint64_t careful_until_ = 0;  ///< no block is judged before this instruction
  std::uint64_t batch_first_ = 0;    ///< instruction with which the batch in progress begins
  std::uint64_t alone_until_ = 0;    ///< each is judged by itself before this one
  const DecodedInstruction* string_ = nullptr;  ///< in progress
  std::vector<std::uint8_t> area_;              ///< of one block, or of a batch
  std::vector<JudgedPart> parts_told_;
  std::vector<BlockStore> stores_told_;  ///< of which the first few are valid
  std::vector<BlockRead> reads_told_;
  std::vector<const fast::Block*> overcounted_;  ///< Block::executions has one too many, each time
  bool references_ = false;                      ///< somebody who is told of blocks wants them
  std::vector<DataReference> references_told_;   ///< of one block, where not as they were noted
  std::vector<ExecutedBlock> blocks_told_;
  struct NotedWalk {
    PhysAddr entry;
    std::uint32_t size = 0;
    std::uint32_t block = 0;        ///< number in the batch
    std::uint32_t logged = 0;       ///< accesses of the batch before it
    std::uint32_t instruction = 0;  ///< number in the block
  };
  std::vector<NotedWalk> walks_;         ///< of the batch in progress
  const fast::Op* walks_for_ = nullptr;  ///< operation whose access is being found; null: none
  struct {
    PhysAddr at;
    std::uint32_t size = 0;
    std::size_t index = 0;
  } alone_;  ///< where the one store goes that is made alone
};

}  // namespace citcat
