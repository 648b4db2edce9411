#include "replay/machine/fast/fast_tier.h"

#include <algorithm>

#include "replay/machine/units/debug_unit.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

using fast::Block;
using fast::Exit;
using fast::LazyFlags;
using fast::Policy;
using fast::State;
using fast::TlbEntry;

namespace {

constexpr std::uint32_t kFlagIf = 1u << 9;
/// What EFLAGS images never show.
constexpr std::uint32_t kHidden = kFlagRf | kFlagVm;

}  // namespace

FastTier::FastTier(CpuContext& cpu, InFlight& flight, Expectation& expectation, DebugUnit& debug)
    : cpu_(cpu),
      flight_(flight),
      expectation_(expectation),
      debug_(debug),
      store_(cpu.model, cpu.memory),
      strings_(
          cpu.memory,
          [this](std::uint32_t linear, bool write) { return find_string_page(linear, write); },
          [this](PhysAddr at, std::uint32_t size) { note_string_store(at, size); }, {}) {
  cpu.memory.set_watcher(*this);
  for (auto& state : states_) {
    state = std::make_unique<State>();
    state->resolver = this;
    state->jumps.fill(&fast::kNowhere);
    forget_pages(*state);
  }
}

bool FastTier::applies() const {
  return cpu_.by_blocks && !flight_.active && !flight_.resuming && cpu_.position.iteration == 0 &&
         !cpu_.polling && debug_.pending() == 0 && !debug_.watches_code() &&
         (cpu_.engine.system_flags() & kFlagTf) == 0 && !cpu_.engine.inhibited() &&
         cpu_.position.instruction < cpu_.until.instruction;
}

void FastTier::forget_pages(State& s) {
  for (TlbEntry& entry : s.reads) entry.tag = TlbEntry::kNone;
  for (TlbEntry& entry : s.writes) entry.tag = TlbEntry::kNone;
  s.code_pages.fill(~std::uint64_t{0});
}

/// Takes the state over from the engine.
void FastTier::begin() {
  if (stale_ || epoch_ != cpu_.mmu.epoch()) {
    stale_ = false;
    epoch_ = cpu_.mmu.epoch();
    for (auto& state : states_) forget_pages(*state);
  }
  State& s = *(s_ = states_[cpu_.user_mode() ? 1 : 0].get());
  for (int i = 0; i < 8; ++i) s.r[static_cast<std::size_t>(i)] = cpu_.engine.gpr(i);
  const std::uint32_t flags = cpu_.engine.eflags();
  s.flags = LazyFlags::from(flags);
  s.eflags = flags & ~(kArithmeticFlags | kHidden);
  s.set_interrupts = false;
  const std::uint32_t iopl = flags >> 12 & 3;
  const bool v86 = (flags & kFlagVm) != 0;
  s.iopl_allows = (cpu_.engine.cr(0) & 1) == 0 || (v86 ? iopl == 3 : cpu_.cpl() <= iopl);
  take_segments();
  eip_ = cpu_.engine.eip();
  iteration_ = 0;
  limit_ = cpu_.until.instruction;
  s.left = static_cast<std::int64_t>(limit_ - cpu_.position.instruction);
}

void FastTier::take_segments() {
  State& s = *s_;
  const Engine& engine = cpu_.engine;
  const bool any = !cpu_.protected_mode();
  std::uint8_t flat = 0;
  for (int i = 0; i < 6; ++i) {
    const auto n = static_cast<std::size_t>(i);
    const std::uint32_t flags = engine.segment_flags(i), limit = engine.segment_limit(i);
    s.segment_base[n] = engine.segment_base(i);
    s.selectors[n] = engine.segment_selector(i);
    const bool expand_down = (flags & 0x1c00) == 0x1400;
    const bool present = (flags & 0x8000) != 0, code = (flags & 0x800) != 0,
               bit = (flags & 0x200) != 0;
    // With a limit of 4 GiB whatever goes on at 0 finds no page entry that reaches so far.
    const std::int64_t last = limit == 0xffffffff ? std::int64_t{limit} + 15 : limit;
    s.read_limit[n] = !expand_down && (any || (present && (!code || bit))) ? last : -1;
    s.write_limit[n] = !expand_down && (any || (present && !code && bit)) ? last : -1;
    const bool unlimited = limit == 0xffffffff && s.read_limit[n] > 0 && s.write_limit[n] > 0;
    if (engine.segment_base(i) == 0 && unlimited) flat |= static_cast<std::uint8_t>(1u << i);
  }
  s.stack_mask = cpu_.stack_bits();
  shape_.bits32 = (engine.hflags() & kHfCs32) != 0;
  shape_.stack32 = cpu_.stack32();
  shape_.real_or_v86 = any;
  shape_.v86 = (engine.system_flags() & kFlagVm) != 0;
  shape_.flat = flat;
  shape_.code_base = engine.segment_base(kCs);
  const std::uint32_t code_limit = engine.segment_limit(kCs);
  shape_.code_limit = code_limit;
  s.code_limit = code_limit;
  fast::CodeShape& last = shapes_[s_ == states_[1].get() ? 1 : 0];
  if (last == shape_) return;
  last = shape_;
  s.jumps.fill(&fast::kNowhere);
}

/// Gives the state back, before the instruction at `eip_`.
void FastTier::end() {
  State& s = *s_;
  for (int i = 0; i < 8; ++i) cpu_.engine.set_gpr(i, s.r[static_cast<std::size_t>(i)]);
  const std::uint32_t hidden = cpu_.engine.system_flags() & kHidden;
  cpu_.engine.set_eflags(s.eflags | s.flags.eflags() | hidden);
  cpu_.engine.set_eip(eip_);
  settle_position();
  cpu_.position.iteration = iteration_;
  cpu_.linear = shape_.code_base + eip_;
  if (s.set_interrupts) cpu_.engine.step_once();
}

void FastTier::settle_position() {
  cpu_.position.instruction = limit_ - static_cast<std::uint64_t>(s_->left);
}

Policy FastTier::policy() const { return Policy::plain; }

void FastTier::run() {
  if (!applies()) return;
  begin();
  const std::uint64_t before = cpu_.position.instruction;
  while (s_->left > 0) {
    const Block* block = find_block(eip_);
    if (block == nullptr) break;
    if (block->count > s_->left) {
      block = &store_.cut(*block, static_cast<std::uint32_t>(s_->left), policy());
    }
    run_block(*block);
    if (!after_block()) break;
  }
  end();
  if (cpu_.position.instruction != before || iteration_ != 0) {
    cpu_.resume_flag = false;
    flight_.retries = 0;
  }
}

/// Where the code of a page lies; false where looking it up has an effect.
bool FastTier::find_code_page(std::uint32_t linear, PhysAddr& frame) {
  const auto known =
      cpu_.mmu.translate_quietly(LinearAddr{linear}, Access::execute, cpu_.user_mode());
  if (!known || !cpu_.memory.is_mapped(known->frame.page())) return false;
  frame = known->frame;
  return true;
}

const Block* FastTier::find_block(std::uint32_t eip) {
  State& s = *s_;
  if (store_.full()) {
    store_.clear();
    for (auto& state : states_) state->jumps.fill(&fast::kNowhere);
  }
  if (eip > shape_.code_limit) return nullptr;
  fast::CodePlace place;
  place.eip = eip;
  place.linear = shape_.code_base + eip;
  if (!find_code_page(place.linear, place.frame)) return nullptr;
  const std::uint32_t next_page = (place.linear & ~kPageMask) + kPageSize;
  if (kPageSize - (place.linear & kPageMask) < kMaxInstructionBytes) {
    place.has_second = find_code_page(next_page, place.second_frame);
  }
  if (epoch_ != cpu_.mmu.epoch()) {
    epoch_ = cpu_.mmu.epoch();
    for (auto& state : states_) forget_pages(*state);
  }
  const Block* const block = store_.find(place, shape_, policy());
  if (store_.take_new_code()) {
    // Stores to it are to be noticed.
    for (auto& state : states_) {
      for (TlbEntry& entry : state->writes) entry.tag = TlbEntry::kNone;
    }
  }
  if (block == nullptr) return nullptr;
  if (!block->crosses) s.code_pages[block->page_index] = block->where;
  return block;
}

void FastTier::run_block(const Block& block) {
  State& s = *s_;
  s.block = &block;
  s.left -= block.count;
  block.ops[0].handler(block.ops, &s, s.area, s.flags.z, s.flags.s, s.flags.c);
}

bool FastTier::after_block() {
  State& s = *s_;
  const Block& block = *s.block;
  switch (s.exit) {
    case Exit::branch: {
      eip_ = s.next;
      if (s.left <= 0) return false;
      // The way there is remembered, if it leads to a block that may be run like this.
      const Block* const next = find_block(eip_);
      if (next == nullptr) return false;
      if (next->crosses || next->count == 0) return true;
      if (s.exit_link == 2) {
        s.jumps[State::jump_index(eip_)] = next;
      } else {
        block.next[s.exit_link] = next;
      }
      return true;
    }
    case Exit::tail:
      eip_ = block.eip_of(block.count);
      if (block.tail == Block::Tail::string) return run_string(block);
      return false;
    case Exit::careful:
    case Exit::patched: {
      const std::uint32_t done = block.number_of(s.at);
      s.left += block.count - done;
      eip_ = block.eip_of(done);
      return s.exit == Exit::patched;
    }
  }
  return false;
}

bool FastTier::run_string(const Block& block) {
  State& s = *s_;
  if (s.left <= 0) return false;
  const DecodedInstruction info = store_.decode(block, block.count);
  if (!strings_.run(s, info, PhysAddr{block.frame})) {
    iteration_ = strings_.iterations();
    return false;
  }
  --s.left;
  eip_ += info.length;
  if (!shape_.bits32) eip_ &= 0xffff;
  return s.left > 0;
}

fast::StringPage FastTier::find_string_page(std::uint32_t linear, bool write) {
  State& s = *s_;
  const std::size_t index = linear >> 12 & (fast::kTlbEntries - 1);
  const TlbEntry& entry = write ? s.writes[index] : s.reads[index];
  const bool here = entry.tag == (linear & ~kPageMask);
  if (!here) {
    const LinearAddr code{shape_.code_base + eip_};
    if (cpu_.mmu.takes_place_of(LinearAddr{linear}, code) || !fill(s, linear, write)) return {};
  }
  const PhysAddr at{entry.frame + (linear & kPageMask)};
  if (write && (store_.holds_code(at.page()) || cpu_.memory.holds_code(at.page()))) {
    s.writes[index].tag = TlbEntry::kNone;
  }
  return {cpu_.memory.host(at), at};
}

void FastTier::note_string_store(PhysAddr at, std::uint32_t size) {
  if (cpu_.memory.holds_code(at.page())) cpu_.memory.drop_code(at, size);
  cpu_.memory.mark_defined(at, size);
}

/// Brings a page into the tables of the handlers, if that has no other effect.
bool FastTier::fill(State& s, std::uint32_t linear, bool write) {
  const std::uint32_t page = linear & ~kPageMask;
  const auto known = cpu_.mmu.translate_quietly(
      LinearAddr{page}, write ? Access::write : Access::read, cpu_.user_mode());
  const bool evicted = stale_ || epoch_ != cpu_.mmu.epoch();
  if (evicted) {
    stale_ = false;
    epoch_ = cpu_.mmu.epoch();
    for (auto& state : states_) forget_pages(*state);
  }
  if (!known || !cpu_.memory.is_mapped(known->frame.page())) return false;
  const std::uint32_t frame = known->frame.page();
  if (!write && !cpu_.memory.has_defined(frame)) return false;
  const std::size_t index = page >> 12 & (fast::kTlbEntries - 1);
  TlbEntry& entry = write ? s.writes[index] : s.reads[index];
  entry.tag = page;
  entry.frame = known->frame.value;
  entry.host = reinterpret_cast<std::uint8_t*>(
      reinterpret_cast<std::uintptr_t>(cpu_.memory.host(known->frame)) - page);
  if (write) cpu_.memory.lend(frame);
  return true;
}

fast::MissResolver::Answer FastTier::resolve(State& s, const fast::Op* op) {
  if (s.one_op != nullptr || s.miss_size == 0) return Answer::careful;
  const std::uint32_t linear = s.miss_linear;
  const bool crosses = (linear & kPageMask) + s.miss_size > kPageSize;
  if (crosses) return Answer::careful;
  if (s.block->crosses) return Answer::careful;
  // With one TLB for both, data may take the place of the code that is running.
  if (cpu_.mmu.takes_place_of(LinearAddr{linear}, LinearAddr{s.block->linear})) {
    return Answer::careful;
  }
  if (!fill(s, linear, s.miss_write)) return Answer::careful;
  // Its own code must still lie where it does.
  if (s.code_pages[s.block->page_index] != s.block->where) {
    PhysAddr frame;
    if (!find_code_page(s.block->linear, frame) || frame.value != s.block->frame) {
      return Answer::careful;
    }
    s.code_pages[s.block->page_index] = s.block->where;
  }
  if (!s.miss_write) return Answer::again;
  const std::size_t index = linear >> 12 & (fast::kTlbEntries - 1);
  const std::uint32_t frame = s.writes[index].frame / kPageSize;
  if (!store_.holds_code(frame) && !cpu_.memory.holds_code(frame)) return Answer::again;
  // Each store to a frame of code is looked at.
  const std::uint32_t number = s.block->number_of(op);
  const bool ends = number + 1 == s.block->count && s.block->tail == Block::Tail::branch;
  if (ends) {
    s.writes[index].tag = TlbEntry::kNone;
    return Answer::careful;
  }
  alone_ = {linear & ~kPageMask, PhysAddr{s.writes[index].frame + (linear & kPageMask)},
            s.miss_size, index, true};
  return Answer::alone;
}

bool FastTier::store_made(State& s) {
  s.writes[alone_.index].tag = TlbEntry::kNone;
  if (cpu_.memory.holds_code(alone_.at.page())) {
    cpu_.memory.drop_code(alone_.at, alone_.size);
  }
  const bool dropped = store_.stored(alone_.at, alone_.size);
  return !dropped || s.block->frame / kPageSize != alone_.at.page();
}

}  // namespace citcat
