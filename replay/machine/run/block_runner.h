#pragma once
// Running whole blocks unreported.
//
// What of a block runs so is found when the engine translates it (block_planner.h). Of these only
// the block's beginning is noticed, and what they did is told afterwards from the registers at both
// ends. Whatever is not plain - a page not yet translated, a fault, an event due within the block -
// stops the engine before the instruction concerned, which is then executed in the reported way.

#include <cstdint>
#include <optional>

#include "events/address.h"
#include "replay/machine/cpu_context.h"
#include "replay/machine/expectation.h"
#include "replay/machine/in_flight.h"
#include "replay/machine/run/block_speculation.h"
#include "replay/machine/running_block.h"

namespace citcat {

class BlockPlanner;
class CodePatcher;
class DebugUnit;
class InstructionRunner;

/// meet(), meet_instruction() and meet_fault() inside the engine's loop, as EngineClient says; the
/// rest between runs of it. What runs once for each block is in one translation unit, but for what
/// a judge asks of it.
class BlockRunner {
 public:
  /// All must outlive the object.
  BlockRunner(CpuContext& cpu, InFlight& flight, Expectation& expectation, RunningBlock& running,
              SegmentRights& rights, DebugUnit& debug, CodePatcher& patcher,
              InstructionRunner& instructions, BlockSpeculation& speculation, BlockPlanner& planner)
      : cpu_(cpu),
        flight_(flight),
        expectation_(expectation),
        running_(running),
        rights_(rights),
        debug_(debug),
        patcher_(patcher),
        instructions_(instructions),
        speculation_(speculation),
        planner_(planner) {}

  /// The engine reports the instruction at `linear`.
  void meet_instruction(std::uint32_t linear);
  /// The engine raised `vector` by itself.
  void meet_fault(std::uint32_t vector);
  /// The engine found no translation, with EIP at the instruction at `linear`. False when the block
  /// in progress is to be taken back.
  bool settle_for_translation(std::uint32_t linear);

  /// The engine is about to execute the block of `size` bytes at `linear`.
  void meet(std::uint32_t linear, std::uint32_t size, TranslatedBlock& translated);

 private:
  /// Sets cpu_.code.block_page and cpu_.code.block_frame for code at `linear`; false where
  /// find_code() has none.
  bool find_frame(std::uint32_t linear) {
    return (linear & ~kPageMask) == cpu_.code.block_page || find_new_frame(linear);
  }
  bool find_new_frame(std::uint32_t linear);
  std::optional<PhysAddr> find_code(LinearAddr page);
  std::uint32_t find_second_frame(std::uint32_t linear);
  bool lies_as_translated(std::uint32_t linear, std::uint32_t size, const BlockTemplate* block,
                          std::uint32_t& second);
  /// Of a block that crosses pages the second one still is where it was.
  bool lies_in_both_pages(const BlockTemplate& block) {
    return block.second_frame == BlockTemplate::kNoFrame ||
           find_second_frame(block.key.linear) == block.second_frame;
  }
  void meet_other(std::uint32_t linear, std::uint32_t size, TranslatedBlock& translated);
  void follow_elsewhere(std::uint32_t linear, std::uint32_t size, BlockTemplate& block);
  [[gnu::always_inline]] void follow(std::uint32_t linear, std::uint32_t size,
                                     BlockTemplate& block);
  void follow_comparing(std::uint32_t linear, std::uint32_t size, BlockTemplate& block);
  void follow_asked(std::uint32_t linear, std::uint32_t size, BlockTemplate& block);
  bool follow_compared(std::uint32_t linear, BlockTemplate& block);
  void meet_block(std::uint32_t linear, std::uint32_t size, BlockTemplate* block);
  bool settle_last(std::uint32_t linear, std::uint32_t size, const BlockTemplate* block);
  void ask_again(std::uint32_t linear);
  bool fits(const BlockTemplate& block, std::uint32_t size);
  void begin_block(BlockTemplate& block);
  bool ask_to_tell(const BlockTemplate& block);
  void refuse_block(BlockTemplate& block);
  bool enter_block(BlockTemplate& block);
  void warm_up(std::uint32_t linear);
  bool settle_block(std::uint32_t linear, std::uint32_t size);
  bool stores_into_itself(std::uint32_t linear) const;
  void retire_block(std::uint32_t count);
  /// That many instructions of a block completed.
  void count_block(std::uint32_t count) {
    cpu_.resume_flag = false;
    flight_.retries = 0;
    cpu_.position.instruction += count;
  }
  void leave_block(std::uint32_t linear);
  bool runs_in_block(std::uint32_t linear);

  CpuContext& cpu_;
  InFlight& flight_;
  Expectation& expectation_;
  RunningBlock& running_;
  SegmentRights& rights_;
  DebugUnit& debug_;
  CodePatcher& patcher_;
  InstructionRunner& instructions_;
  BlockSpeculation& speculation_;
  BlockPlanner& planner_;
};

}  // namespace citcat
