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
  const auto known = mmu_.translate_quietly(page, Access::execute, user_mode());
  if (!known) return std::nullopt;
  const auto told = engine_code_.frame_of(page);
  if (!told || told->page() != known->frame.page()) return std::nullopt;
  return known->frame;
}

bool Machine::find_new_frame(std::uint32_t linear) {
  const auto frame = find_code(LinearAddr{linear});
  if (!frame) return false;
  block_page_ = linear & ~kPageMask;
  block_frame_ = frame->value;
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
  return found && (block == nullptr || block->key.frame == block_frame_);
}

/// What decides whether a template may run besides where it lies; never 0. Its mode and the base of
/// its code are its translation's.
std::uint32_t Machine::surroundings() const {
  return std::uint32_t{unlimited_read_} | std::uint32_t{unlimited_written_} << 8 |
         std::uint32_t{flat_} << 16 | std::uint32_t{code_unlimited_} << 24 | 1u << 31;
}

// A block after a block, both met in these surroundings before. on_block() and follow() are all
// that most blocks see of the machine: but for the sink they call nothing, or call it last, so that
// hardly a register need be saved for it.

void Machine::on_block(std::uint32_t linear, std::uint32_t size, TranslatedBlock& translated) {
  if (translated.mark != surroundings_) return meet_other(linear, size, translated);
  auto& block = static_cast<BlockTemplate&>(translated);
  const bool here = (linear & ~kPageMask) == block_page_ && block.key.frame == block_frame_ &&
                    block.second_frame == BlockTemplate::kNoFrame;
  if (!here) return follow_elsewhere(linear, size, block);
  follow(linear, size, block);
}

void Machine::meet_other(std::uint32_t linear, std::uint32_t size, TranslatedBlock& translated) {
  const bool named = &translated != &engine_.unnamed();
  meet_block(linear, size, named ? static_cast<BlockTemplate*>(&translated) : nullptr);
}

/// `block` is in another page than the last one, or in two.
void Machine::follow_elsewhere(std::uint32_t linear, std::uint32_t size, BlockTemplate& block) {
  const bool found =
      find_frame(linear) && block.key.frame == block_frame_ && lies_in_both_pages(block);
  if (!found) return meet_block(linear, size, &block);
  follow(linear, size, block);
}

/// `block` lies where it did: what is due is to be asked, and what ran is to be told.
inline void Machine::follow(std::uint32_t linear, std::uint32_t size, BlockTemplate& block) {
  BlockTemplate& done = *pending_;
  // Often enough they are not in the cache, and the engine executes a block before they are wanted.
  done.follower = &block;
  __builtin_prefetch(block.follower);
  __builtin_prefetch(block.read_by_sink);
  if (!done.ran_whole_before(linear, size)) return meet_block(linear, size, &block);
  const std::uint64_t begin = position_.instruction, end = begin + done.count();
  if (end + block.whole_count > quiet_until_) return follow_asked(linear, size, block);
  if (detail_ == Detail::comparison) return follow_comparing(linear, size, block);
  position_.instruction = end;
  linear_ = linear;
  pending_ = &block;
  if (detail_ == Detail::nothing) return;
  if (done.needs_exit) block_registers_.set_exit(engine_.gprs());
  tell_receiver(done, {begin, position_.iteration});
  if (block.has_addresses) block_registers_.set_entry(engine_.gprs());
}

/// The same where nothing but stores is to be compared.
void Machine::follow_comparing(std::uint32_t linear, std::uint32_t size, BlockTemplate& block) {
  if (expects_stores_ && block.whole_stores) return follow_asked(linear, size, block);
  const BlockTemplate& done = *pending_;
  if (done.needs_exit) block_registers_.set_exit(engine_.gprs());
  tell_unasked(done);
  if (block.has_addresses) block_registers_.set_entry(engine_.gprs());
  position_.instruction += done.count();
  linear_ = linear;
  pending_ = &block;
}

/// The same where the block that ends or the one that begins has something to be compared.
void Machine::follow_asked(std::uint32_t linear, std::uint32_t size, BlockTemplate& block) {
  if (!compares_ || !follow_compared(linear, block)) meet_block(linear, size, &block);
}

/// False where `block` is to be looked at in full.
bool Machine::follow_compared(std::uint32_t linear, BlockTemplate& block) {
  block.prefetch();
  retire_block(pending_->count());
  if (rolled_back_) return true;
  if (position_.instruction + block.whole_count > until_.instruction) return false;
  linear_ = linear;
  block.prefetch_accesses();
  if (ask_to_tell(block) && enter_block(block)) return true;
  surroundings_ = kUnknown;
  refuse_block(block);
  return true;
}

/// Looks at everything. `block`: null where it is to be reported.
void Machine::meet_block(std::uint32_t linear, std::uint32_t size, BlockTemplate* block) {
  surroundings_ = kUnknown;
  if (rolled_back_) return;
  bool once_more = false;
  if (pending_ == nullptr) {
    once_more = stores_into_itself(linear);
  } else if (block == nullptr) {
    once_more = settle_block(linear, size);
  } else {  // what is left comes again reported: may_be_once_more()
    retire_block(pending_->count());
  }
  if (rolled_back_) return;
  if (once_more) {
    CITCAT_ASSERT(block == nullptr);
    return;
  }
  std::uint32_t second = BlockTemplate::kNoFrame;
  if (!lies_as_translated(linear, size, block, second)) {
    hot_ = linear;
    request(Action::ask_again);
    return;
  }
  if (block == nullptr) {
    warm_up(linear);
    return;
  }
  // What was prepared before a page was translated is done over by the block.
  if (resuming_ && in_flight_ && linear == linear_) in_flight_ = false;
  resuming_ = false;
  if (in_flight_) {
    if (!settle_before(linear)) return;
    // MOV to CR and INVLPG drop translations when they complete, which is now: the engine looked
    // for the block before.
    if (block_page_ == kNoPage && !lies_as_translated(linear, size, block, second)) {
      hot_ = linear;
      request(Action::ask_again);
      return;
    }
  }
  linear_ = linear;
  if (boundary_stop()) {
    request(Action::at_position);
    return;
  }
  if (forget_code_) [[unlikely]] {
    request(Action::forget_code);
    return;
  }
  if (block->second_frame == BlockTemplate::kNoFrame) block->second_frame = second;
  if (!block->fits(size)) {
    const bool again = short_block_.linear == linear && short_block_.size == size;
    short_block_ = {linear, again ? 0 : size};
  }
  if (!block->fits(size) || !lies_in_both_pages(*block) || !segments_allow(*block) ||
      watches_code()) {
    hot_ = linear;
    request(Action::replan);
    return;
  }
  if (position_.instruction + block->whole_count > until_.instruction) {
    request(Action::step);
    return;
  }
  if (!ask_to_tell(*block) || !enter_block(*block)) {
    refuse_block(*block);
    return;
  }
  if (polling_) return;
  block->mark = surroundings();
  // count_block() has more to do otherwise.
  if (!resume_flag_ && native_retries_ == 0) surroundings_ = block->mark;
}

/// Finds out whether `block` is to be compared. False where it must not run unreported.
bool Machine::ask_to_tell(const BlockTemplate& block) {
  compared_ = false;
  if (!compares_) return true;
  const std::uint64_t end = position_.instruction + block.whole_count;
  if (end > expected_.instruction) update_expected();
  compared_ = has_something_due(block, end);
  find_quiet();
  return !compared_ || may_tell(block);
}

/// `block` cannot be compared as a whole now: its first instruction is executed reported. What is
/// refused again and again, as a loop is that stores to a device, had better be reported whole.
void Machine::refuse_block(BlockTemplate& block) {
  pending_ = nullptr;
  if (block.refused < BlockTemplate::kMaxRefused && ++block.refused < BlockTemplate::kMaxRefused) {
    request(Action::step);
    return;
  }
  hot_ = block.key.linear;
  request(Action::replan);
}

/// The engine is about to execute `block` unreported. False where it cannot be told what it is
/// going to overwrite.
bool Machine::enter_block(BlockTemplate& block) {
  pending_ = &block;
  if (detail_ == Detail::nothing) return true;
  block_registers_.set_entry(engine_.gprs());
  speculated_ = false;
  if (!compared_) return true;
  if (!find_stores(block)) return false;
  speculated_ = agrees_ahead(block);
  if (speculated_) return true;
  engine_.read_raw_flags(flags_at_entry_);
  block_begin_ = block.key.linear;
  save_overwritten();
  return true;
}

/// A block that is reported was met.
void Machine::warm_up(std::uint32_t linear) {
  if ((engine_.system_flags() & kFlagTf) != 0 || engine_.inhibited() || watches_code()) return;
  if (!blocks_.heat(linear, kExecutionsUntilHot)) return;
  if (arranged_ || resuming_ || (in_flight_ && linear == linear_)) return;
  hot_ = linear;
  request(Action::retranslate);
}

void Machine::forget_code() {
  forget_code_ = false;
  engine_.flush_code();
  blocks_.clear();
}

bool Machine::segments_allow(const BlockTemplate& block) {
  if (segments_stale_) refresh_segments();
  return (block.segments_read & ~unlimited_read_) == 0 &&
         (block.segments_written & ~unlimited_written_) == 0 &&
         (block.segments_flat & ~flat_) == 0 && code_unlimited_;
}

/// The engine checks neither limits nor types of segments: quiet code may use only those where
/// there is nothing to check (Intel SDM vol. 3, 5.3 and 5.4).
void Machine::refresh_segments() {
  segments_stale_ = false;
  unlimited_read_ = unlimited_written_ = flat_ = 0;
  for (int s = 0; s < 6; ++s) {
    const std::uint32_t flags = engine_.segment_flags(s);
    block_registers_.base[static_cast<std::size_t>(s)] = engine_.segment_base(s);
    if (engine_.segment_base(s) == 0) flat_ |= static_cast<std::uint8_t>(1u << s);
    const bool expand_down = (flags & 0x1c00) == 0x1400;
    if (engine_.segment_limit(s) != 0xffffffff || expand_down) continue;
    const bool present = (flags & 0x8000) != 0, code = (flags & 0x800) != 0,
               bit = (flags & 0x200) != 0;
    const bool any = !protected_mode();
    if (any || (present && (!code || bit))) unlimited_read_ |= static_cast<std::uint8_t>(1u << s);
    if (any || (present && !code && bit)) unlimited_written_ |= static_cast<std::uint8_t>(1u << s);
  }
  code_unlimited_ = engine_.segment_limit(kCs) == 0xffffffff;
}

/// Something came after the block in progress: a report of what begins at `linear`, of which the
/// engine made a block of `size` bytes (0: not known). True when that is the instruction before
/// which the block was left.
bool Machine::settle_block(std::uint32_t linear, std::uint32_t size) {
  const BlockTemplate& block = *pending_;
  const std::uint32_t inside = block.index_of(linear);
  const bool left = inside < block.count() && block.was_left_before(inside, size);
  const bool alone = left && size == block.instructions[inside].info.length;
  retire_block(left ? inside : block.count());
  return alone;
}

/// The instruction in flight stored into its own block, and comes again as a block of its own. The
/// engine must not be stopped there: it would make the store twice.
bool Machine::stores_into_itself(std::uint32_t linear) const {
  return in_flight_ && !resuming_ && linear == linear_ && comes_again();
}

void Machine::retire_block(std::uint32_t count) {
  const BlockTemplate& whole = *pending_;
  pending_ = nullptr;
  info_ = nullptr;
  if (detail_ != Detail::nothing) {
    block_registers_.set_exit(engine_.gprs());
    const bool good = count == 0               ? !compared_ || speculated_ || left_no_traces(0)
                      : count == whole.count() ? tell_block(whole)
                                               : tell_block(whole.first(count, detail_));
    if (!good) {
      rolled_back_ = true;
      careful_until_ = position_.instruction + count + 1;
      engine_.stop();
      return;
    }
  }
  if (count != 0) count_block(count);
}

/// Tells what ran. False when it has to be taken back.
bool Machine::tell_block(const BlockTemplate& block) {
  if (compared_ && speculated_) {
    comparing_->agreed({&block, &block_registers_, {}, {}, true}, position_);
  } else if (compared_ && !tell_accesses(block)) {
    return false;
  }
  tell_unasked(block);
  return true;
}

/// The engine stopped inside the block in progress, before the instruction at `linear`.
void Machine::leave_block(std::uint32_t linear) {
  const std::uint32_t inside = pending_->index_of(linear);
  CITCAT_ASSERT(inside < pending_->count());
  retire_block(inside);
}

/// An instruction is reported. True when it is part of a block that runs unreported all the same.
bool Machine::runs_in_block(std::uint32_t linear) {
  if (pending_ == nullptr) return false;
  BlockTemplate& block = *pending_;
  if (linear != block.end()) {
    CITCAT_ASSERT(block.is_part);  // reported only because it lies between two reports
    return true;
  }
  retire_block(block.count());
  if (rolled_back_ || block.next == nullptr) return false;
  if (!enter_block(*block.next)) {
    pending_ = nullptr;
    linear_ = linear;
    request(Action::step);
  }
  return true;
}

/// With one TLB for code and data the entry of `page` takes the place of one of the block's. Should
/// the block store into itself then, and its page need another walk, it would not show how much of
/// it has run.
bool Machine::drops_code(const BlockTemplate& block, LinearAddr page) const {
  const LinearAddr first{block.key.linear}, last = first + (block.whole_size() - 1);
  return mmu_.takes_place_of(page, first) || mmu_.takes_place_of(page, last);
}

/// What the engine may keep of a translation: nothing that would hide an effect of a later access.
std::optional<Translation> Machine::translate_for_block(LinearAddr page, Access access) {
  if (pending_ != nullptr && access != Access::execute && drops_code(*pending_, page)) {
    return std::nullopt;
  }
  const auto known = mmu_.translate_quietly(page, access, user_mode());
  if (!known) return std::nullopt;
  const std::uint32_t frame = known->frame.page();
  if (!memory_.is_mapped(frame)) return std::nullopt;
  constexpr std::uint32_t kLastPage = 0xfffff;  // an access there may run past 4 GiB, and fault
  if (access != Access::execute && page.page() == kLastPage) return std::nullopt;
  if (access == Access::read && !memory_.has_defined(frame)) return std::nullopt;
  if (access == Access::execute) note_code(frame);
  return allow_engine(*known, access);
}

/// Code of this frame is being translated: from now on stores to it are checked.
void Machine::note_code(std::uint32_t frame) {
  if (memory_.holds_code(frame)) return;
  memory_.note_code(frame);
  engine_.flush_tlb();
}

/// The engine asks for a page to store to. True when its frame holds code and none of it was stored
/// to before: the engine is then stopped, and what it translated of the frame is planned anew
/// (may_be_made_twice()).
bool Machine::begins_to_patch(std::uint32_t frame) {
  if (!by_blocks_ || !memory_.holds_code(frame) || memory_.is_patched(frame)) return false;
  patched_frame_ = frame;
  return true;
}

/// After the engine stopped for that.
void Machine::note_patches() {
  memory_.note_patches(patched_frame_);
  engine_.invalidate_code(PhysAddr{patched_frame_ * kPageSize}, kPageSize);
  patched_frame_ = kNoFrame;
}

/// Blocks store without telling where: the first store to a page must not pass for a load.
Translation Machine::allow_engine(Translation known, Access access) {
  known.holds_no_code = !memory_.holds_code(known.frame.page());
  if (!by_blocks_) return known;
  known.writable = access == Access::write;
  if (!known.writable) return known;
  if (keeps_account_) {
    memory_.note_stores(known.frame.page());
  } else {
    memory_.lend(known.frame.page());
  }
  return known;
}

}  // namespace citcat
