#include "replay/machine/run/block_runner.h"

#include "formats/io/error.h"
#include "replay/machine/run/block_planner.h"
#include "replay/machine/run/block_speculation.h"
#include "replay/machine/run/engine_events.h"
#include "replay/machine/run/engine_translations.h"
#include "replay/machine/run/instruction_runner.h"
#include "replay/machine/units/code_patcher.h"
#include "replay/machine/units/debug_unit.h"
#include "replay/machine/units/port_accesses.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

bool BlockRunner::find_new_frame(std::uint32_t linear) {
  const auto frame = find_code(LinearAddr{linear});
  if (!frame) return false;
  cpu_.code.block_page = linear & ~kPageMask;
  cpu_.code.block_frame = frame->value;
  return true;
}

/// Where the page of code lies, for processor and engine alike. nullopt where the processor's TLB
/// may not take it without further effect, or the engine may believe something else.
std::optional<PhysAddr> BlockRunner::find_code(LinearAddr page) {
  const auto known = cpu_.mmu.translate_quietly(page, Access::execute, cpu_.user_mode());
  if (!known) return std::nullopt;
  const auto told = cpu_.engine_code.frame_of(page);
  if (!told || told->page() != known->frame.page()) return std::nullopt;
  return known->frame;
}

/// Where the page after that of `linear` lies; BlockTemplate::kNoFrame where find_code() has none.
std::uint32_t BlockRunner::find_second_frame(std::uint32_t linear) {
  const auto frame = find_code(LinearAddr{(linear & ~kPageMask) + kPageSize});
  return frame ? frame->value : BlockTemplate::kNoFrame;
}

/// Whether the engine has `size` bytes of code, those of `block` where it is not null, where the
/// processor has them. `second`: the frame of those in the next page, if there are any.
bool BlockRunner::lies_as_translated(std::uint32_t linear, std::uint32_t size,
                                     const BlockTemplate* block, std::uint32_t& second) {
  const bool crosses = (linear & kPageMask) + size > kPageSize;
  second = crosses ? find_second_frame(linear) : BlockTemplate::kNoFrame;
  const bool found = find_frame(linear) && (!crosses || second != BlockTemplate::kNoFrame);
  return found && (block == nullptr || block->key.frame == cpu_.code.block_frame);
}

// A block after a block, both met in these surroundings before. meet() and follow() are all that
// most blocks see of the machine: but for the observer they call nothing, or call it last, so that
// hardly a register need be saved for it.

inline void BlockRunner::meet(std::uint32_t linear, std::uint32_t size,
                              TranslatedBlock& translated) {
  if (translated.mark != running_.surroundings) return meet_other(linear, size, translated);
  auto& block = static_cast<BlockTemplate&>(translated);
  const bool here = (linear & ~kPageMask) == cpu_.code.block_page &&
                    block.key.frame == cpu_.code.block_frame &&
                    block.second_frame == BlockTemplate::kNoFrame;
  if (!here) return follow_elsewhere(linear, size, block);
  follow(linear, size, block);
}

void BlockRunner::meet_other(std::uint32_t linear, std::uint32_t size,
                             TranslatedBlock& translated) {
  const bool named = &translated != &cpu_.engine.unnamed();
  meet_block(linear, size, named ? static_cast<BlockTemplate*>(&translated) : nullptr);
}

/// `block` is in another page than the last one, or in two.
void BlockRunner::follow_elsewhere(std::uint32_t linear, std::uint32_t size, BlockTemplate& block) {
  const bool found =
      find_frame(linear) && block.key.frame == cpu_.code.block_frame && lies_in_both_pages(block);
  if (!found) return meet_block(linear, size, &block);
  follow(linear, size, block);
}

/// `block` lies where it did: what is due is to be asked, and what ran is to be told.
inline void BlockRunner::follow(std::uint32_t linear, std::uint32_t size, BlockTemplate& block) {
  BlockTemplate& done = *running_.block;
  // Often enough they are not in the cache, and the engine executes a block before they are wanted.
  done.follower = &block;
  __builtin_prefetch(block.follower);
  __builtin_prefetch(block.notes.first());
  if (!done.ran_whole_before(linear, size)) return meet_block(linear, size, &block);
  const std::uint64_t begin = cpu_.position.instruction, end = begin + done.count();
  if (end + block.whole_count > expectation_.quiet_until) return follow_asked(linear, size, block);
  if (cpu_.detail == Detail::comparison) return follow_comparing(linear, size, block);
  cpu_.position.instruction = end;
  cpu_.linear = linear;
  running_.block = &block;
  if (cpu_.detail == Detail::nothing) return;
  if (done.needs_exit) running_.registers.set_exit(cpu_.engine.gprs());
  speculation_.tell_observers(done, {begin, cpu_.position.iteration});
  if (block.has_addresses) running_.registers.set_entry(cpu_.engine.gprs());
}

/// The same where nothing but stores is to be compared.
void BlockRunner::follow_comparing(std::uint32_t linear, std::uint32_t size, BlockTemplate& block) {
  if (expectation_.expects_stores && block.whole_stores) return follow_asked(linear, size, block);
  const BlockTemplate& done = *running_.block;
  if (done.needs_exit) running_.registers.set_exit(cpu_.engine.gprs());
  speculation_.tell_unasked(done);
  if (block.has_addresses) running_.registers.set_entry(cpu_.engine.gprs());
  cpu_.position.instruction += done.count();
  cpu_.linear = linear;
  running_.block = &block;
}

/// The same where the block that ends or the one that begins has something to be compared.
void BlockRunner::follow_asked(std::uint32_t linear, std::uint32_t size, BlockTemplate& block) {
  if (!expectation_.compares || !follow_compared(linear, block)) meet_block(linear, size, &block);
}

/// False where `block` is to be looked at in full.
bool BlockRunner::follow_compared(std::uint32_t linear, BlockTemplate& block) {
  block.prefetch();
  retire_block(running_.block->count());
  if (running_.rolled_back) return true;
  if (cpu_.is_due_before(cpu_.position.instruction + block.whole_count)) return false;
  cpu_.linear = linear;
  block.prefetch_accesses();
  if (ask_to_tell(block) && enter_block(block)) return true;
  running_.surroundings = RunningBlock::kUnknown;
  refuse_block(block);
  return true;
}

/// Looks at everything. `block`: null where it is to be reported.
void BlockRunner::meet_block(std::uint32_t linear, std::uint32_t size, BlockTemplate* block) {
  running_.surroundings = RunningBlock::kUnknown;
  if (running_.rolled_back || !settle_last(linear, size, block)) return;
  std::uint32_t second = BlockTemplate::kNoFrame;
  if (!lies_as_translated(linear, size, block, second)) return ask_again(linear);
  if (block == nullptr) return warm_up(linear);
  // What was prepared before a page was translated is done over by the block.
  if (flight_.resuming && flight_.active && linear == cpu_.linear) flight_.active = false;
  flight_.resuming = false;
  if (flight_.active) {
    if (!instructions_.settle_before(linear)) return;
    // MOV to CR and INVLPG drop translations when they complete, which is now: the engine looked
    // for the block before.
    const bool dropped = cpu_.code.block_page == CodePage::kNone;
    if (dropped && !lies_as_translated(linear, size, block, second)) return ask_again(linear);
  }
  cpu_.linear = linear;
  if (cpu_.boundary_stop()) return cpu_.request(AfterStop::at_position);
  if (cpu_.code_cache_full) [[unlikely]]
    return cpu_.request(AfterStop::forget_code);
  if (block->second_frame == BlockTemplate::kNoFrame) block->second_frame = second;
  if (!fits(*block, size)) {
    running_.hot = linear;
    return cpu_.request(AfterStop::replan);
  }
  begin_block(*block);
}

/// Completes what ran before the block at `linear`. False where nothing is to be done about that.
bool BlockRunner::settle_last(std::uint32_t linear, std::uint32_t size,
                              const BlockTemplate* block) {
  bool once_more = false;
  if (running_.block == nullptr) {
    once_more = stores_into_itself(linear);
  } else if (block == nullptr) {
    once_more = settle_block(linear, size);
  } else {  // what is left comes again reported: BlockPlanner::may_be_once_more()
    retire_block(running_.block->count());
  }
  if (running_.rolled_back) return false;
  CITCAT_ASSERT(!once_more || block == nullptr);
  return !once_more;
}

void BlockRunner::ask_again(std::uint32_t linear) {
  running_.hot = linear;
  cpu_.request(AfterStop::ask_again);
}

/// `block` is what the engine made a block of `size` bytes of, and may run as it was planned.
bool BlockRunner::fits(const BlockTemplate& block, std::uint32_t size) {
  if (rights_.stale) rights_.refresh(cpu_, running_.registers);
  if (!block.fits(size)) planner_.note_size(block.key.linear, size);
  return block.fits(size) && lies_in_both_pages(block) && rights_.allow(block) &&
         !debug_.watches_code();
}

/// Nothing is in the way of `block` but what is due in it.
void BlockRunner::begin_block(BlockTemplate& block) {
  if (cpu_.is_due_before(cpu_.position.instruction + block.whole_count)) {
    return cpu_.request(AfterStop::step);
  }
  if (!ask_to_tell(block) || !enter_block(block)) return refuse_block(block);
  if (cpu_.polling) return;
  block.mark = rights_.mark();
  // count_block() has more to do otherwise.
  if (!cpu_.resume_flag && flight_.retries == 0) running_.surroundings = block.mark;
}

/// Finds out whether `block` is to be compared. False where it must not run unreported.
bool BlockRunner::ask_to_tell(const BlockTemplate& block) {
  expectation_.block_compared = false;
  if (!expectation_.compares) {
    expectation_.find_quiet();
    return true;
  }
  const std::uint64_t end = cpu_.position.instruction + block.whole_count;
  if (end > expectation_.next.instruction) expectation_.update();
  expectation_.block_compared = expectation_.has_something_due(block, end);
  expectation_.find_quiet();
  return !expectation_.block_compared || speculation_.may_tell(block);
}

/// `block` cannot be compared as a whole now: its first instruction is executed reported. What is
/// refused again and again, as a loop is that stores to a device, had better be reported whole.
void BlockRunner::refuse_block(BlockTemplate& block) {
  running_.block = nullptr;
  if (block.refused < BlockTemplate::kMaxRefused && ++block.refused < BlockTemplate::kMaxRefused) {
    cpu_.request(AfterStop::step);
    return;
  }
  running_.hot = block.key.linear;
  cpu_.request(AfterStop::replan);
}

/// The engine is about to execute `block` unreported. False where it cannot be told what it is
/// going to overwrite.
bool BlockRunner::enter_block(BlockTemplate& block) {
  running_.block = &block;
  if (cpu_.detail == Detail::nothing) return true;
  running_.registers.set_entry(cpu_.engine.gprs());
  running_.speculated = false;
  return !expectation_.block_compared || speculation_.foresees(block);
}

/// A block that is reported was met.
void BlockRunner::warm_up(std::uint32_t linear) {
  if ((cpu_.engine.system_flags() & kFlagTf) != 0 || cpu_.engine.inhibited() ||
      debug_.watches_code())
    return;
  if (!planner_.heat(linear)) return;
  if (patcher_.is_active() || flight_.resuming || (flight_.active && linear == cpu_.linear)) return;
  running_.hot = linear;
  cpu_.request(AfterStop::retranslate);
}

/// Something came after the block in progress: a report of what begins at `linear`, of which the
/// engine made a block of `size` bytes (0: not known). True when that is the instruction before
/// which the block was left.
bool BlockRunner::settle_block(std::uint32_t linear, std::uint32_t size) {
  const BlockTemplate& block = *running_.block;
  const std::uint32_t inside = block.index_of(linear);
  const bool left = inside < block.count() && block.was_left_before(inside, size);
  const bool alone = left && size == block.instructions[inside].info.length;
  retire_block(left ? inside : block.count());
  return alone;
}

/// The instruction in flight stored into its own block, and comes again as a block of its own. The
/// engine must not be stopped there: it would make the store twice.
bool BlockRunner::stores_into_itself(std::uint32_t linear) const {
  return flight_.active && !flight_.resuming && linear == cpu_.linear &&
         instructions_.comes_again();
}

void BlockRunner::retire_block(std::uint32_t count) {
  const BlockTemplate& whole = *running_.block;
  running_.block = nullptr;
  flight_.info = nullptr;
  if (cpu_.detail != Detail::nothing) {
    running_.registers.set_exit(cpu_.engine.gprs());
    const bool good = count == 0               ? speculation_.was_untouched()
                      : count == whole.count() ? speculation_.tell(whole)
                                               : speculation_.tell(whole.first(count, cpu_.detail));
    if (!good) {
      running_.rolled_back = true;
      speculation_.be_careful_behind(count);
      cpu_.engine.stop();
      return;
    }
  }
  if (count != 0) count_block(count);
}

/// The engine stopped inside the block in progress, before the instruction at `linear`.
void BlockRunner::leave_block(std::uint32_t linear) {
  const std::uint32_t inside = running_.block->index_of(linear);
  CITCAT_ASSERT(inside < running_.block->count());
  retire_block(inside);
}

/// An instruction is reported. True when it is part of a block that runs unreported all the same.
bool BlockRunner::runs_in_block(std::uint32_t linear) {
  if (running_.block == nullptr) return false;
  BlockTemplate& block = *running_.block;
  if (linear != block.end()) {
    CITCAT_ASSERT(block.is_part);  // reported only because it lies between two reports
    return true;
  }
  retire_block(block.count());
  if (running_.rolled_back || block.next == nullptr) return false;
  if (!enter_block(*block.next)) {
    running_.block = nullptr;
    cpu_.linear = linear;
    cpu_.request(AfterStop::step);
  }
  return true;
}

void BlockRunner::meet_instruction(std::uint32_t linear) {
  if (cpu_.by_blocks && (runs_in_block(linear) || running_.rolled_back)) return;
  running_.surroundings = RunningBlock::kUnknown;
  instructions_.meet(linear);
}

void BlockRunner::meet_fault(std::uint32_t vector) {
  if (running_.rolled_back) return;
  running_.surroundings = RunningBlock::kUnknown;
  if (running_.block == nullptr) return instructions_.note_fault(vector);
  // Told again, with everything that goes before a fault, when the instruction is reported.
  cpu_.linear = cpu_.engine.segment_base(kCs) + cpu_.engine.eip();
  leave_block(cpu_.linear);
  if (!running_.rolled_back) cpu_.request(AfterStop::step);
}

bool BlockRunner::settle_for_translation(std::uint32_t linear) {
  if (running_.block == nullptr) return true;
  if (cpu_.engine.fault_access() == EngineAccess::fetch) {
    settle_block(linear, 0);
  } else {
    leave_block(linear);
  }
  return !running_.rolled_back;
}

// ---------------------------------------------------------------------------------------------
// What the engine tells

TranslatedBlock* EngineEvents::on_translation(std::uint32_t linear) {
  return planner_.plan_translation(linear);
}

bool EngineEvents::reports(std::uint32_t linear) { return planner_.reports(linear); }

std::span<const PhysAddr> EngineEvents::hides(std::uint32_t linear) {
  return planner_.hides(linear);
}

void EngineEvents::on_instruction(std::uint32_t linear, std::uint32_t) {
  blocks_.meet_instruction(linear);
}

void EngineEvents::on_block(std::uint32_t linear, std::uint32_t size, TranslatedBlock& block) {
  blocks_.meet(linear, size, block);
}

void EngineEvents::on_exception(std::uint32_t vector, bool) { blocks_.meet_fault(vector); }

std::optional<Translation> EngineEvents::on_translate(std::uint32_t linear, EngineAccess access) {
  return translations_.translate(linear, access);
}

std::uint32_t EngineEvents::on_in(std::uint16_t port, std::uint32_t size) {
  return ports_.read(port, size);
}

void EngineEvents::on_out(std::uint16_t port, std::uint32_t size, std::uint32_t value) {
  ports_.write(port, size, value);
}

}  // namespace citcat
