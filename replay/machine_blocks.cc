// Running whole blocks unreported.
//
// Every block the engine translates reports each of its instructions at first, and those pass
// Machine::prepare(). A block that is met often and begins with instructions that need no care is
// translated once more with reports from the first instruction that does: until there only its
// beginning is noticed, and what it did is told afterwards from the registers at both ends. It is
// never assumed that a translation still is the quiet one: the next report shows which it was.
// Whatever is not plain - a page not yet translated, a fault, an event due within the block -
// stops the engine before the instruction concerned, which is then executed in the reported way.

#include <algorithm>

#include "formats/error.h"
#include "replay/code_bytes.h"
#include "replay/machine.h"
#include "replay/machine_descriptor.h"

namespace citcat {

namespace {

/// Executions of a block before it is translated again. Cold code is cheaper to run reported than
/// to translate twice (some 10 us a block), all the more where all it accesses is to be told.
std::uint16_t executions_until_hot(Detail detail) { return detail == Detail::comparison ? 32 : 16; }

/// Of EFLAGS, what shapes the engine's code: TF, IOPL, RF, VM, AC (cpu_get_tb_cpu_state()).
constexpr std::uint32_t kModeFlags = 0x100 | 0x3000 | 0x10000 | 0x20000 | 0x40000;

}  // namespace

std::uint64_t Machine::block_mode() const {
  return std::uint64_t{engine_.system_flags() & kModeFlags} << 32 | engine_.hflags();
}

/// Where the page of code lies, for processor and engine alike. nullopt where the processor's TLB
/// may not take it without further effect, or the engine may believe something else.
std::optional<PhysAddr> Machine::find_code(LinearAddr page) {
  const auto known = mmu_.translate_quietly(page, Access::execute, user_mode());
  if (!known || !engine_code_.is(page, known->frame)) return std::nullopt;
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

BlockKey Machine::block_key(std::uint32_t linear) const {
  return {linear, block_frame_, block_mode(), engine_.segment_base(kCs)};
}

BlockTemplate* Machine::find_block(std::uint32_t linear) {
  if (!find_frame(linear)) return nullptr;
  const BlockKey key = block_key(linear);
  BlockTemplate*& recent = blocks_.recent(linear);
  if (recent != nullptr && recent->key == key) [[likely]]
    return recent;
  BlockTemplate* const found = blocks_.find(key);
  if (found != nullptr) recent = found;
  return found;
}

std::uint32_t Machine::find_surroundings() {
  if (surroundings_numbers_.exhausted()) {
    surroundings_numbers_ = {};
    met_.clear();
  }
  const auto bits = std::uint32_t{unlimited_read_} | std::uint32_t{unlimited_written_} << 8 |
                    std::uint32_t{flat_} << 16 | std::uint32_t{code_unlimited_} << 24;
  return surroundings_numbers_.number_of(
      {block_mode(), blocks_.gone(), engine_.segment_base(kCs), bits});
}

/// A block after a block, both met in these surroundings before: nothing else is to be looked at
/// but where the second one lies.
inline bool Machine::follow_quickly(std::uint32_t linear, std::uint32_t size) {
  if (surroundings_ == SurroundingsNumbers::kUnknown) return false;
  const Met& met = met_[met_slot(linear)];
  if (met.surroundings != surroundings_ || met.linear != linear) return false;
  BlockTemplate* const block = met.block;
  if (!find_frame(linear) || block->key.frame != block_frame_) return false;
  if (!lies_in_both_pages(*block)) return false;
  BlockTemplate& done = *pending_;
  // Often enough they are not in the cache, and the engine executes a block before they are wanted.
  done.follower = block;
  __builtin_prefetch(block->follower);
  __builtin_prefetch(block->read_by_sink);
  if (!done.ran_whole_before(linear, size)) return false;
  if (compared_ || position_.instruction + done.count() + block->whole_count > quiet_until_) {
    return compares_ && follow_compared(linear, *block);
  }
  if (detail_ != Detail::nothing) {
    if (done.needs_exit) block_registers_.set_exit(engine_.gprs());
    tell_unasked(done);
    if (block->has_addresses) block_registers_.set_entry(engine_.gprs());
  }
  count_block(done.count());
  linear_ = linear;
  pending_ = block;
  return true;
}

/// The same where the block that ends or the one that begins has something to be compared.
bool Machine::follow_compared(std::uint32_t linear, BlockTemplate& block) {
  retire_block(pending_->count());
  if (taken_back_) return true;
  if (position_.instruction + block.whole_count > until_.instruction) return false;
  linear_ = linear;
  if (ask_to_tell(block) && enter_block(block)) return true;
  pending_ = nullptr;
  surroundings_ = SurroundingsNumbers::kUnknown;
  request(Action::step);
  return true;
}

void Machine::on_block(std::uint32_t linear, std::uint32_t size) {
  if (follow_quickly(linear, size)) return;
  surroundings_ = SurroundingsNumbers::kUnknown;
  meet_block(linear, size);
}

void Machine::meet_block(std::uint32_t linear, std::uint32_t size) {
  if (retranslating_) finish_retranslation();
  if (taken_back_) return;
  const bool once_more =
      pending_ != nullptr ? settle_block(linear, size) : stores_into_itself(linear);
  if (once_more || taken_back_) return;
  if (!stale_blocks_.empty() && !arranged_) {
    request(Action::drop_blocks);
    hot_ = linear;
    return;
  }
  const bool crosses = (linear & kPageMask) + size > kPageSize;
  if (!find_frame(linear) || (crosses && find_second_frame(linear) == BlockTemplate::kNoFrame)) {
    hot_ = linear;
    request(Action::ask_again);
    return;
  }
  BlockTemplate* const block = find_block(linear);
  if (block == nullptr) {
    warm_up(linear, size);
    return;
  }
  // What was prepared before a page was translated is done over by the block.
  if (resuming_ && in_flight_ && linear == linear_) in_flight_ = false;
  resuming_ = false;
  if (in_flight_ && !settle_before(linear)) return;
  linear_ = linear;
  if (boundary_stop()) {
    request(Action::at_position);
    return;
  }
  if (!lies_in_both_pages(*block) || !segments_allow(*block) || watches_code()) {
    stale_blocks_.push_back(block->key);
    request(Action::drop_blocks);
    hot_ = linear;
    return;
  }
  if (position_.instruction + block->whole_count > until_.instruction || !ask_to_tell(*block) ||
      !enter_block(*block)) {
    pending_ = nullptr;
    request(Action::step);
    return;
  }
  if (polling_) return;
  surroundings_ = find_surroundings();
  met_[met_slot(linear)] = {surroundings_, linear, block};
}

/// Finds out whether `block` is to be compared. False where it must not run unreported.
bool Machine::ask_to_tell(const BlockTemplate& block) {
  compared_ = false;
  if (!compares_) return true;
  const std::uint64_t end = position_.instruction + block.whole_count;
  if (end > expected_.instruction) update_expected();
  compared_ = end > expected_.instruction || (expects_stores_ && block.whole_stores);
  return !compared_ || may_tell(block);
}

/// The engine is about to execute `block` unreported. False where what it overwrites cannot be
/// saved.
bool Machine::enter_block(BlockTemplate& block) {
  pending_ = &block;
  if (detail_ == Detail::nothing) return true;
  block_registers_.set_entry(engine_.gprs());
  if (!compared_) return true;
  engine_.read_raw_flags(flags_at_entry_);
  block_begin_ = block.key.linear;
  return save_overwritten(block);
}

void Machine::warm_up(std::uint32_t linear, std::uint32_t size) {
  if ((engine_.system_flags() & kFlagTf) != 0 || engine_.inhibited() || watches_code()) return;
  if (!blocks_.heat(linear, executions_until_hot(detail_))) return;
  if (arranged_ || resuming_ || (in_flight_ && linear == linear_)) return;
  hot_ = linear;
  hot_size_ = size;
  request(Action::retranslate);
}

/// Asked before reported instructions; all code is reported when it is translated first.
bool Machine::wants_code_forgotten() {
  constexpr std::uint32_t kSeldom = 128;
  return ++reports_ % kSeldom == 0 && engine_.code_cache_needs_flush();
}

void Machine::forget_code() {
  engine_.flush_code();
  blocks_.clear();
}

/// The template of the `size` bytes at `linear`; nullopt where not all of them can be had.
std::optional<BlockTemplate> Machine::compile_block(std::uint32_t linear, std::uint32_t size) {
  CodeBytes code(memory_, PhysAddr{block_frame_ | (linear & kPageMask)});
  std::uint32_t second = BlockTemplate::kNoFrame;
  if (code.in_first_page() < size) {
    second = find_second_frame(linear);
    if (second == BlockTemplate::kNoFrame) return std::nullopt;
    code.set_second_frame(PhysAddr{second});
  }
  if (!code.is_mapped()) return std::nullopt;
  BlockCompiler compiler(block_key(linear), second, model_, (engine_.hflags() & kHfSs32) != 0,
                         flat_, detail_);
  std::uint32_t done = 0;
  while (done < size) {
    const InstructionInfo info = decoded(linear + done, code.at(done));
    if (info.state != DecodeState::ok || !compiler.add(info)) break;
    if (compares_ && !code.is_defined(done, info.length)) return std::nullopt;
    done += info.length;
  }
  return compiler.finish(done >= size);
}

/// After the engine stopped before a hot block.
void Machine::retranslate() {
  const std::uint32_t linear = hot_;
  settle_in_flight(linear, false);
  engine_.set_eip(linear - engine_.segment_base(kCs));
  if (in_flight_) return;  // the last count check of a REP
  if (!find_frame(linear)) return;
  refresh_segments();
  std::optional<BlockTemplate> compiled = compile_block(linear, hot_size_);
  if (!compiled) return;
  BlockTemplate& block = *compiled;
  if (block.count() == 0 || !segments_allow(block) || !engine_.forget_code(linear)) return;
  // Without reports more fits into one of the engine's blocks than with them: what may follow the
  // template is reported in any case. Only a branch is followed by nothing.
  const BlockTemplate& last = block.last();
  const bool ends = !last.reported_tail && last.instructions.back().info.control_flow;
  engine_.report_instructions(block.end(), ends && block.next ? last.key.linear : 0xffffffff);
  retranslating_ = true;
  if (blocks_.full() || engine_.code_cache_needs_flush()) forget_code();
  blocks_.insert(std::move(block));
}

/// The instruction at `linear`, of which `bytes` are in its page.
InstructionInfo Machine::decoded(std::uint32_t linear, std::span<const std::uint8_t> bytes) const {
  const DecodedCode::Slot& slot = decoded_.slot(linear);
  const CodeMode mode = code_mode();
  return slot.is(linear, mode, bytes) ? slot.info : decode_instruction(bytes, mode, model_);
}

void Machine::finish_retranslation() {
  retranslating_ = false;
  engine_.report_all_instructions();
}

/// Templates whose code turned out to be reported: the engine has translated it anew.
void Machine::drop_blocks() {
  settle_in_flight(hot_, false);
  engine_.set_eip(hot_ - engine_.segment_base(kCs));
  for (const BlockKey& key : stale_blocks_) {
    // Should a quiet translation be left, it must not run without its template.
    engine_.invalidate_code(PhysAddr{key.frame | (key.linear & kPageMask)}, 1);
    if (const BlockTemplate* const block = blocks_.find(key)) {
      blocks_.keep_hot(*block, executions_until_hot(detail_));
    }
    blocks_.erase(key);
  }
  stale_blocks_.clear();
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
  return in_flight_ && !resuming_ && linear == linear_ && !info_->control_flow;
}

void Machine::retire_block(std::uint32_t count) {
  const BlockTemplate& whole = *pending_;
  pending_ = nullptr;
  info_ = nullptr;
  if (detail_ != Detail::nothing) {
    block_registers_.set_exit(engine_.gprs());
    const bool good = count == 0               ? !compared_ || left_no_traces(0)
                      : count == whole.count() ? tell_block(whole)
                                               : tell_block(whole.first(count, detail_));
    if (!good) {
      taken_back_ = true;
      careful_until_ = position_.instruction + count + 1;
      engine_.stop();
      return;
    }
  }
  if (count != 0) count_block(count);
}

/// Tells what ran. False when it has to be taken back.
bool Machine::tell_block(const BlockTemplate& block) {
  if (compared_ && !tell_accesses(block)) return false;
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
  if (retranslating_) finish_retranslation();
  if (pending_ == nullptr) return false;
  BlockTemplate& block = *pending_;
  if (linear == block.end()) {
    retire_block(block.count());
    if (taken_back_ || block.next == nullptr) return false;
    if (!enter_block(*block.next)) {
      pending_ = nullptr;
      linear_ = linear;
      request(Action::step);
    }
    return true;
  }
  // Reported only because it lies between the beginnings of two parts.
  if (block.is_part) return true;
  CITCAT_ASSERT(linear == block.key.linear);
  stale_blocks_.push_back(block.key);
  pending_ = nullptr;
  return false;
}

/// What the engine may keep of a translation: nothing that would hide an effect of a later access.
std::optional<Translation> Machine::translate_for_block(LinearAddr page, Access access) {
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
