// Running whole blocks unreported.
//
// What of a block runs so is found when the engine translates it (machine_translation.cc): its
// first instructions, up to one that needs care. Of these only the block's beginning is noticed,
// and what they did is told afterwards from the registers at both ends. Whatever is not plain - a
// page not yet translated, a fault, an event due within the block - stops the engine before the
// instruction concerned, which is then executed in the reported way.

#include "formats/io/error.h"
#include "replay/machine/machine.h"
#include "replay/machine/machine_descriptor.h"

namespace citcat {

namespace {

/// Executions of a block that was translated to be reported before it is looked at again: what was
/// in the way then, an event for instance, may be gone. Translating takes some 10 us.
constexpr std::uint16_t kExecutionsUntilHot = 16;

}  // namespace

/// Where the page of code lies, for processor and engine alike. nullopt where the processor's TLB
/// may not take it without further effect, or the engine may believe something else.
std::optional<PhysAddr> Machine::find_code(LinearAddr page) {
  const auto known = cpu_.mmu.translate_quietly(page, Access::execute, cpu_.user_mode());
  if (!known) return std::nullopt;
  const auto told = engine_code_.frame_of(page);
  if (!told || told->page() != known->frame.page()) return std::nullopt;
  return known->frame;
}

bool Machine::find_new_frame(std::uint32_t linear) {
  const auto frame = find_code(LinearAddr{linear});
  if (!frame) return false;
  cpu_.code.block_page = linear & ~kPageMask;
  cpu_.code.block_frame = frame->value;
  return true;
}

/// Where the page after that of `linear` lies; BlockTemplate::kNoFrame where find_code() has none.
std::uint32_t Machine::find_second_frame(std::uint32_t linear) {
  const auto frame = find_code(LinearAddr{(linear & ~kPageMask) + kPageSize});
  return frame ? frame->value : BlockTemplate::kNoFrame;
}

/// Whether the engine has `size` bytes of code, those of `block` where it is not null, where the
/// processor has them. `second`: the frame of those in the next page, if there are any.
bool Machine::lies_as_translated(std::uint32_t linear, std::uint32_t size,
                                 const BlockTemplate* block, std::uint32_t& second) {
  const bool crosses = (linear & kPageMask) + size > kPageSize;
  second = crosses ? find_second_frame(linear) : BlockTemplate::kNoFrame;
  const bool found = find_frame(linear) && (!crosses || second != BlockTemplate::kNoFrame);
  return found && (block == nullptr || block->key.frame == cpu_.code.block_frame);
}

// A block after a block, both met in these surroundings before. on_block() and follow() are all
// that most blocks see of the machine: but for the sink they call nothing, or call it last, so that
// hardly a register need be saved for it.

void Machine::on_block(std::uint32_t linear, std::uint32_t size, TranslatedBlock& translated) {
  if (translated.mark != running_.surroundings) return meet_other(linear, size, translated);
  auto& block = static_cast<BlockTemplate&>(translated);
  const bool here = (linear & ~kPageMask) == cpu_.code.block_page &&
                    block.key.frame == cpu_.code.block_frame &&
                    block.second_frame == BlockTemplate::kNoFrame;
  if (!here) return follow_elsewhere(linear, size, block);
  follow(linear, size, block);
}

void Machine::meet_other(std::uint32_t linear, std::uint32_t size, TranslatedBlock& translated) {
  const bool named = &translated != &cpu_.engine.unnamed();
  meet_block(linear, size, named ? static_cast<BlockTemplate*>(&translated) : nullptr);
}

/// `block` is in another page than the last one, or in two.
void Machine::follow_elsewhere(std::uint32_t linear, std::uint32_t size, BlockTemplate& block) {
  const bool found =
      find_frame(linear) && block.key.frame == cpu_.code.block_frame && lies_in_both_pages(block);
  if (!found) return meet_block(linear, size, &block);
  follow(linear, size, block);
}

/// `block` lies where it did: what is due is to be asked, and what ran is to be told.
inline void Machine::follow(std::uint32_t linear, std::uint32_t size, BlockTemplate& block) {
  BlockTemplate& done = *running_.block;
  // Often enough they are not in the cache, and the engine executes a block before they are wanted.
  done.follower = &block;
  __builtin_prefetch(block.follower);
  __builtin_prefetch(block.read_by_sink);
  if (!done.ran_whole_before(linear, size)) return meet_block(linear, size, &block);
  const std::uint64_t begin = cpu_.position.instruction, end = begin + done.count();
  if (end + block.whole_count > expectation_.quiet_until) return follow_asked(linear, size, block);
  if (detail_ == Detail::comparison) return follow_comparing(linear, size, block);
  cpu_.position.instruction = end;
  cpu_.linear = linear;
  running_.block = &block;
  if (detail_ == Detail::nothing) return;
  if (done.needs_exit) running_.registers.set_exit(cpu_.engine.gprs());
  tell_receiver(done, {begin, cpu_.position.iteration});
  if (block.has_addresses) running_.registers.set_entry(cpu_.engine.gprs());
}

/// The same where nothing but stores is to be compared.
void Machine::follow_comparing(std::uint32_t linear, std::uint32_t size, BlockTemplate& block) {
  if (expectation_.expects_stores && block.whole_stores) return follow_asked(linear, size, block);
  const BlockTemplate& done = *running_.block;
  if (done.needs_exit) running_.registers.set_exit(cpu_.engine.gprs());
  tell_unasked(done);
  if (block.has_addresses) running_.registers.set_entry(cpu_.engine.gprs());
  cpu_.position.instruction += done.count();
  cpu_.linear = linear;
  running_.block = &block;
}

/// The same where the block that ends or the one that begins has something to be compared.
void Machine::follow_asked(std::uint32_t linear, std::uint32_t size, BlockTemplate& block) {
  if (!expectation_.compares || !follow_compared(linear, block)) meet_block(linear, size, &block);
}

/// False where `block` is to be looked at in full.
bool Machine::follow_compared(std::uint32_t linear, BlockTemplate& block) {
  block.prefetch();
  retire_block(running_.block->count());
  if (running_.rolled_back) return true;
  if (cpu_.position.instruction + block.whole_count > cpu_.until.instruction) return false;
  cpu_.linear = linear;
  block.prefetch_accesses();
  if (ask_to_tell(block) && enter_block(block)) return true;
  running_.surroundings = RunningBlock::kUnknown;
  refuse_block(block);
  return true;
}

/// Looks at everything. `block`: null where it is to be reported.
void Machine::meet_block(std::uint32_t linear, std::uint32_t size, BlockTemplate* block) {
  running_.surroundings = RunningBlock::kUnknown;
  if (running_.rolled_back) return;
  bool once_more = false;
  if (running_.block == nullptr) {
    once_more = stores_into_itself(linear);
  } else if (block == nullptr) {
    once_more = settle_block(linear, size);
  } else {  // what is left comes again reported: may_be_once_more()
    retire_block(running_.block->count());
  }
  if (running_.rolled_back) return;
  if (once_more) {
    CITCAT_ASSERT(block == nullptr);
    return;
  }
  std::uint32_t second = BlockTemplate::kNoFrame;
  if (!lies_as_translated(linear, size, block, second)) {
    hot_ = linear;
    cpu_.request(AfterStop::ask_again);
    return;
  }
  if (block == nullptr) {
    warm_up(linear);
    return;
  }
  // What was prepared before a page was translated is done over by the block.
  if (flight_.resuming && flight_.active && linear == cpu_.linear) flight_.active = false;
  flight_.resuming = false;
  if (flight_.active) {
    if (!settle_before(linear)) return;
    // MOV to CR and INVLPG drop translations when they complete, which is now: the engine looked
    // for the block before.
    if (cpu_.code.block_page == CodePage::kNone &&
        !lies_as_translated(linear, size, block, second)) {
      hot_ = linear;
      cpu_.request(AfterStop::ask_again);
      return;
    }
  }
  cpu_.linear = linear;
  if (cpu_.boundary_stop()) {
    cpu_.request(AfterStop::at_position);
    return;
  }
  if (cpu_.code_cache_full) [[unlikely]] {
    cpu_.request(AfterStop::forget_code);
    return;
  }
  if (block->second_frame == BlockTemplate::kNoFrame) block->second_frame = second;
  if (!block->fits(size)) {
    const bool again = short_block_.linear == linear && short_block_.size == size;
    short_block_ = {linear, again ? 0 : size};
  }
  if (rights_.stale) rights_.refresh(cpu_, running_.registers);
  if (!block->fits(size) || !lies_in_both_pages(*block) || !rights_.allow(*block) ||
      watches_code()) {
    hot_ = linear;
    cpu_.request(AfterStop::replan);
    return;
  }
  if (cpu_.position.instruction + block->whole_count > cpu_.until.instruction) {
    cpu_.request(AfterStop::step);
    return;
  }
  if (!ask_to_tell(*block) || !enter_block(*block)) {
    refuse_block(*block);
    return;
  }
  if (cpu_.polling) return;
  block->mark = rights_.mark();
  // count_block() has more to do otherwise.
  if (!cpu_.resume_flag && flight_.retries == 0) running_.surroundings = block->mark;
}

/// Finds out whether `block` is to be compared. False where it must not run unreported.
bool Machine::ask_to_tell(const BlockTemplate& block) {
  expectation_.block_compared = false;
  if (!expectation_.compares) return true;
  const std::uint64_t end = cpu_.position.instruction + block.whole_count;
  if (end > expectation_.next.instruction) expectation_.update();
  expectation_.block_compared = expectation_.has_something_due(block, end);
  expectation_.find_quiet();
  return !expectation_.block_compared || may_tell(block);
}

/// `block` cannot be compared as a whole now: its first instruction is executed reported. What is
/// refused again and again, as a loop is that stores to a device, had better be reported whole.
void Machine::refuse_block(BlockTemplate& block) {
  running_.block = nullptr;
  if (block.refused < BlockTemplate::kMaxRefused && ++block.refused < BlockTemplate::kMaxRefused) {
    cpu_.request(AfterStop::step);
    return;
  }
  hot_ = block.key.linear;
  cpu_.request(AfterStop::replan);
}

/// The engine is about to execute `block` unreported. False where it cannot be told what it is
/// going to overwrite.
bool Machine::enter_block(BlockTemplate& block) {
  running_.block = &block;
  if (detail_ == Detail::nothing) return true;
  running_.registers.set_entry(cpu_.engine.gprs());
  running_.speculated = false;
  if (!expectation_.block_compared) return true;
  if (!find_stores(block)) return false;
  running_.speculated = agrees_ahead(block);
  if (running_.speculated) return true;
  cpu_.engine.read_raw_flags(flags_at_entry_);
  block_begin_ = block.key.linear;
  save_overwritten();
  return true;
}

/// A block that is reported was met.
void Machine::warm_up(std::uint32_t linear) {
  if ((cpu_.engine.system_flags() & kFlagTf) != 0 || cpu_.engine.inhibited() || watches_code())
    return;
  if (!blocks_.heat(linear, kExecutionsUntilHot)) return;
  if (arranged_ || flight_.resuming || (flight_.active && linear == cpu_.linear)) return;
  hot_ = linear;
  cpu_.request(AfterStop::retranslate);
}

void Machine::forget_code() {
  cpu_.code_cache_full = false;
  cpu_.engine.flush_code();
  blocks_.clear();
}

/// Something came after the block in progress: a report of what begins at `linear`, of which the
/// engine made a block of `size` bytes (0: not known). True when that is the instruction before
/// which the block was left.
bool Machine::settle_block(std::uint32_t linear, std::uint32_t size) {
  const BlockTemplate& block = *running_.block;
  const std::uint32_t inside = block.index_of(linear);
  const bool left = inside < block.count() && block.was_left_before(inside, size);
  const bool alone = left && size == block.instructions[inside].info.length;
  retire_block(left ? inside : block.count());
  return alone;
}

/// The instruction in flight stored into its own block, and comes again as a block of its own. The
/// engine must not be stopped there: it would make the store twice.
bool Machine::stores_into_itself(std::uint32_t linear) const {
  return flight_.active && !flight_.resuming && linear == cpu_.linear && comes_again();
}

void Machine::retire_block(std::uint32_t count) {
  const BlockTemplate& whole = *running_.block;
  running_.block = nullptr;
  flight_.info = nullptr;
  if (detail_ != Detail::nothing) {
    running_.registers.set_exit(cpu_.engine.gprs());
    const bool good = count == 0
                          ? !expectation_.block_compared || running_.speculated || left_no_traces(0)
                      : count == whole.count() ? tell_block(whole)
                                               : tell_block(whole.first(count, detail_));
    if (!good) {
      running_.rolled_back = true;
      careful_until_ = cpu_.position.instruction + count + 1;
      cpu_.engine.stop();
      return;
    }
  }
  if (count != 0) count_block(count);
}

/// Tells what ran. False when it has to be taken back.
bool Machine::tell_block(const BlockTemplate& block) {
  if (expectation_.block_compared && running_.speculated) {
    expectation_.sink->agreed({&block, &running_.registers, {}, {}, true}, cpu_.position);
  } else if (expectation_.block_compared && !tell_accesses(block)) {
    return false;
  }
  tell_unasked(block);
  return true;
}

/// The engine stopped inside the block in progress, before the instruction at `linear`.
void Machine::leave_block(std::uint32_t linear) {
  const std::uint32_t inside = running_.block->index_of(linear);
  CITCAT_ASSERT(inside < running_.block->count());
  retire_block(inside);
}

/// An instruction is reported. True when it is part of a block that runs unreported all the same.
bool Machine::runs_in_block(std::uint32_t linear) {
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

/// With one TLB for code and data the entry of `page` takes the place of one of the block's. Should
/// the block store into itself then, and its page need another walk, it would not show how much of
/// it has run.
bool Machine::drops_code(const BlockTemplate& block, LinearAddr page) const {
  const LinearAddr first{block.key.linear}, last = first + (block.whole_size() - 1);
  return cpu_.mmu.takes_place_of(page, first) || cpu_.mmu.takes_place_of(page, last);
}

/// What the engine may keep of a translation: nothing that would hide an effect of a later access.
std::optional<Translation> Machine::translate_for_block(LinearAddr page, Access access) {
  if (running_.block != nullptr && access != Access::execute && drops_code(*running_.block, page)) {
    return std::nullopt;
  }
  const auto known = cpu_.mmu.translate_quietly(page, access, cpu_.user_mode());
  if (!known) return std::nullopt;
  const std::uint32_t frame = known->frame.page();
  if (!cpu_.memory.is_mapped(frame)) return std::nullopt;
  constexpr std::uint32_t kLastPage = 0xfffff;  // an access there may run past 4 GiB, and fault
  if (access != Access::execute && page.page() == kLastPage) return std::nullopt;
  if (access == Access::read && !cpu_.memory.has_defined(frame)) return std::nullopt;
  if (access == Access::execute) note_code(frame);
  return allow_engine(*known, access);
}

/// Code of this frame is being translated: from now on stores to it are checked.
void Machine::note_code(std::uint32_t frame) {
  if (cpu_.memory.holds_code(frame)) return;
  cpu_.memory.note_code(frame);
  cpu_.engine.flush_tlb();
}

/// The engine asks for a page to store to. True when its frame holds code and none of it was stored
/// to before: the engine is then stopped, and what it translated of the frame is planned anew
/// (may_be_made_twice()).
bool Machine::begins_to_patch(std::uint32_t frame) {
  if (!cpu_.by_blocks || !cpu_.memory.holds_code(frame) || cpu_.memory.is_patched(frame))
    return false;
  patched_frame_ = frame;
  return true;
}

/// After the engine stopped for that.
void Machine::note_patches() {
  cpu_.memory.note_patches(patched_frame_);
  cpu_.engine.invalidate_code(PhysAddr{patched_frame_ * kPageSize}, kPageSize);
  patched_frame_ = kNoFrame;
}

/// Blocks store without telling where: the first store to a page must not pass for a load.
Translation Machine::allow_engine(Translation known, Access access) {
  known.holds_no_code = !cpu_.memory.holds_code(known.frame.page());
  if (!cpu_.by_blocks) return known;
  known.writable = access == Access::write;
  if (!known.writable) return known;
  if (expectation_.keeps_account) {
    cpu_.memory.note_stores(known.frame.page());
  } else {
    cpu_.memory.lend(known.frame.page());
  }
  return known;
}

}  // namespace citcat
