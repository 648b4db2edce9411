#include "replay/machine/fast/fast_tier.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "replay/machine/units/debug_unit.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

using fast::BatchedBlock;
using fast::Block;
using fast::Exit;
using fast::Keep;
using fast::LazyFlags;
using fast::Policy;
using fast::State;
using fast::TlbEntry;

namespace {

/// What images of EFLAGS never show.
constexpr std::uint32_t kHidden = kFlagRf | kFlagVm;
constexpr std::uint8_t kIndirectLink = 2;
constexpr std::uint64_t kNoCodePage = ~std::uint64_t{0};  ///< of State::code_pages
/// Instructions between two looks at what ends the run.
constexpr std::uint64_t kLongestRun = std::uint64_t{1} << 40;
/// Instructions that are told together with what they access.
constexpr std::uint32_t kMostTold = 128;
/// Iterations of a repeated string before the run is looked at
/// (InstructionRunner::look_within_repeat()).
constexpr std::uint32_t kIterationsAtOnce = 1u << 16;

StoreTrap* trap_of(BlockJudge* judge) {
  auto* const setter = dynamic_cast<TrapSetter*>(judge);
  return setter != nullptr ? &setter->store_trap() : nullptr;
}

}  // namespace

FastTier::FastTier(CpuContext& cpu, InFlight& flight, Expectation& expectation, DebugUnit& debug)
    : cpu_(cpu),
      flight_(flight),
      expectation_(expectation),
      debug_(debug),
      store_(cpu.model, cpu.memory),
      strings_(
          cpu.memory,
          [this](LinearAddr linear, bool write) { return find_string_page(linear, write); },
          [this](PhysAddr at, std::uint32_t size, const PhysAddr* from) {
            note_string_store(at, size, from);
          },
          [this](const std::array<fast::StringLoop::Operand, 2>& first, std::uint32_t count,
                 std::int32_t step) { tell_iterations(*string_, first, count, step); }),
      exact_(expectation.compares),
      records_(cpu.audience.records()),
      trap_(trap_of(cpu.audience.judge())),
      area_(fast::kAreaBytes + fast::kAreaBeyond) {
  cpu.memory.set_watcher(*this);
  for (auto& state : states_) {
    state = std::make_unique<State>();
    state->resolver = this;
    state->jumps.fill(&fast::kNowhere);
    state->batch_jumps.fill(&fast::kNowhere);
  }
  forget_pages();
}

bool FastTier::applies() {
  // What an instruction that is to be begun anew has read was told already.
  const bool begun = flight_.active || flight_.resuming || flight_.reads_to_skip != 0;
  if (!cpu_.by_blocks || begun || cpu_.position.iteration != 0 || cpu_.polling ||
      debug_.pending() != 0 || debug_.watches_code() ||
      (cpu_.engine.system_flags() & kFlagTf) != 0 || cpu_.engine.inhibited() ||
      keeps_upper_halves()) {
    return false;
  }
  cpu_.find_block_limit();
  return cpu_.position.instruction < cpu_.blocks_until;
}

/// Something is left in the upper half of a register that 64-bit mode alone shows, and that outside
/// of it the handlers would clear before an instruction does.
bool FastTier::keeps_upper_halves() const {
  if (!cpu_.traits.has_long_mode || cpu_.bits64()) return false;
  std::uint64_t any = 0;
  for (int i = 0; i < 8; ++i) any |= cpu_.engine.wide().gpr(i);
  return any >> 32 != 0;
}

void FastTier::forget_pages() {
  for (auto& state : states_) {
    for (TlbEntry& entry : state->reads) entry.tag = TlbEntry::kNone;
    for (TlbEntry& entry : state->writes) entry.tag = TlbEntry::kNone;
    state->code_pages.fill(kNoCodePage);
  }
}

/// Drops the pages known to the handlers where the Mmu, or what is defined, may have changed.
void FastTier::check_pages() {
  if (!stale_ && epoch_ == cpu_.mmu.epoch() && mask_epoch_ == cpu_.memory.mask_epoch()) return;
  stale_ = false;
  epoch_ = cpu_.mmu.epoch();
  mask_epoch_ = cpu_.memory.mask_epoch();
  forget_pages();
}

/// Mmu::translate_quietly(). What the TLB loses when it takes a page in had the page's place there,
/// and so has it in each table here: nothing else is to be dropped.
std::optional<Translation> FastTier::translate(LinearAddr linear, Access access) {
  check_pages();
  const auto known = cpu_.mmu.translate_quietly(linear, access, cpu_.user_mode());
  if (!stale_ && epoch_ == cpu_.mmu.epoch()) return known;
  stale_ = false;
  epoch_ = cpu_.mmu.epoch();
  static_assert(Mmu::kDataEntries % fast::kTlbEntries == 0 &&
                Mmu::kCodeEntries % fast::kCodePages == 0);
  const std::size_t index = State::tlb_index(linear),
                    code_index = linear.page() & (fast::kCodePages - 1);
  for (auto& state : states_) {
    state->reads[index].tag = state->writes[index].tag = TlbEntry::kNone;
    state->code_pages[code_index] = kNoCodePage;
  }
  return known;
}

// ---------------------------------------------------------------------------------------------
// To and from the engine

/// Takes the state over from the engine.
void FastTier::begin() {
  check_pages();
  const std::size_t privilege = cpu_.user_mode() ? 1 : cpu_.mmu.overrides_smap() ? 2 : 0;
  State& s = *(s_ = states_[privilege].get());
  if (cpu_.bits64()) {
    take_segments_of_64_bits();
  } else {
    take_segments();
  }
  take_shape();
  for (int i = 0; i < general_registers(); ++i) {
    s.r[static_cast<std::size_t>(i)] = general_register(i);
  }
  const std::uint32_t flags = cpu_.engine.eflags();
  s.flags = LazyFlags::from(flags);
  s.eflags = flags & ~(kArithmeticFlags | kHidden);
  s.set_interrupts = false;
  s.untold = {};
  s.shift_count = 0;
  s.next_store = nullptr;
  s.least_left = 0;
  const std::uint32_t iopl = flags >> 12 & 3;
  const bool v86 = (flags & kFlagVm) != 0;
  s.iopl_allows = (cpu_.engine.cr(0) & 1) == 0 || (v86 ? iopl == 3 : cpu_.cpl() <= iopl);
  eip_ = cpu_.ip();
  found_ = {};
  iteration_ = 0;
  // Where nothing ends the run there is no limit, and no signed number of instructions to it.
  limit_ = std::min(cpu_.blocks_until, cpu_.position.instruction + kLongestRun);
  s.left = static_cast<std::int64_t>(limit_ - cpu_.position.instruction);
  attend();
  set_trap();
}

/// `policy`, or the one in its place that looks for the trap if there is one.
Policy FastTier::with_trap(Policy policy) const {
  const bool looks = s_->trap != nullptr && policy == Policy{Keep::nothing, true};
  return looks ? Policy{Keep::stores, true} : policy;
}

/// Tells the handlers where the trap lies. Those of other policies than one do not look for it.
void FastTier::set_trap() {
  State& s = *s_;
  s.trapped = false;
  s.trap = nullptr;
  if (trap_ == nullptr || trap_->size == 0) return;
  if (!looks_for_trap() || quiet_end() < limit_) trap_->met = true;
  // What is not mapped is not stored to here.
  s.trap = cpu_.memory.host(trap_->address);
  s.trap_bytes = trap_->size;
}

void FastTier::stored(PhysAddr at, std::uint32_t size) {
  if (trap_ != nullptr && overlap(at, size, trap_->address, trap_->size)) trap_->met = true;
  store_.stored(at, size);
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
    // Behind a limit of 4 GiB nothing is refused; what goes on there at 0 finds no page.
    constexpr std::int64_t kBehind = 32;
    const std::int64_t last = limit == 0xffffffff ? std::int64_t{limit} + kBehind : limit;
    s.read_limit[n] = !expand_down && (any || (present && (!code || bit))) ? last : -1;
    s.write_limit[n] = !expand_down && (any || (present && !code && bit)) ? last : -1;
    const bool unlimited = limit == 0xffffffff && s.read_limit[n] > 0 && s.write_limit[n] > 0;
    if (engine.segment_base(i) == 0 && unlimited) flat |= static_cast<std::uint8_t>(1u << i);
  }
  s.stack_mask = cpu_.stack_bits();
  shape_.bits64 = false;
  shape_.bits32 = (engine.hflags() & kHfCs32) != 0;
  shape_.stack32 = cpu_.stack32();
  shape_.real_or_v86 = any;
  shape_.v86 = (engine.system_flags() & kFlagVm) != 0;
  shape_.counts_zeros = cpu_.has_tzcnt || cpu_.has_lzcnt;
  shape_.flat = flat;
  shape_.code_base = engine.segment_base(kCs);
  shape_.code_limit = s.code_limit = engine.segment_limit(kCs);
}

/// Only FS and GS have a base, and none a limit (Intel SDM vol. 1, 3.4.2.1).
void FastTier::take_segments_of_64_bits() {
  State& s = *s_;
  const Engine& engine = cpu_.engine;
  shape_ = {};
  for (int i = 0; i < 6; ++i) {
    const auto n = static_cast<std::size_t>(i);
    s.segment_base[n] = cpu_.base_of(i);
    s.selectors[n] = engine.segment_selector(i);
    const bool flat = i != kFs && i != kGs && engine.wide().segment_base(i) == 0;
    if (flat) shape_.flat |= static_cast<std::uint8_t>(1u << i);
  }
  shape_.bits64 = true;
  shape_.real_or_v86 = false;
  shape_.code_limit = ~std::uint64_t{0};
}

/// Ways from block to block are of one shape for each privilege.
void FastTier::take_shape() {
  fast::CodeShape& last = shapes_[privilege()];
  if (last == shape_) return;
  last = shape_;
  forget_ways(privilege());
}

/// Gives the state back, before the instruction at `eip_`.
void FastTier::end() {
  State& s = *s_;
  for (int i = 0; i < general_registers(); ++i) {
    const std::uint64_t value = s.r[static_cast<std::size_t>(i)];
    if (shape_.bits64) {
      cpu_.engine.wide().set_gpr(i, value);
    } else {
      cpu_.engine.set_gpr(i, static_cast<std::uint32_t>(value));
    }
  }
  const std::uint32_t hidden = cpu_.engine.system_flags() & kHidden;
  cpu_.engine.set_eflags(s.eflags | s.flags.eflags() | hidden);
  cpu_.set_ip(eip_);
  if (s.trapped) trap_->met = true;
  cpu_.position = {position(), iteration_};
  cpu_.linear = shape_.linear(eip_);
  trail_.tell(cpu_.audience);
  if (s.set_interrupts) cpu_.engine.step_once();
  if (expectation_.keeps_account) {
    expectation_.untold_flags = expectation_.untold_flags + s.untold;
  }
}

void FastTier::run() {
  if (!applies()) return;
  begin();
  const Position before = cpu_.position;
  try {
    if (exact_) {
      run_judged();
    } else {
      run_quietly();
    }
  } catch (...) {
    end();
    throw;
  }
  end();
  if (cpu_.position != before) {
    cpu_.resume_flag = false;
    flight_.retries = 0;
  }
}

// ---------------------------------------------------------------------------------------------
// Blocks

/// Where the code of a page lies; false where looking it up has an effect.
bool FastTier::find_code_page(LinearAddr linear, PhysAddr& frame) {
  const auto known = translate(linear, Access::execute);
  if (!known || !cpu_.memory.is_mapped(known->frame.page())) return false;
  frame = known->frame;
  return true;
}

/// Forgets all blocks where they take too much memory. While none is in use.
void FastTier::make_room() {
  if (!store_.full()) return;
  trail_.tell(cpu_.audience);
  tell_counts();
  store_.clear();
  found_ = {};
  for (std::size_t i = 0; i < kPrivileges; ++i) forget_ways(i);
}

/// Blocks found for that privilege must not run any more.
void FastTier::forget_ways(std::size_t privilege) {
  states_[privilege]->jumps.fill(&fast::kNowhere);
  states_[privilege]->batch_jumps.fill(&fast::kNowhere);
  known_[privilege].fill({});
}

const Block* FastTier::find_block(std::uint64_t eip, Policy policy) {
  const Found found = std::exchange(found_, {});
  const bool is_it = found.block != nullptr && found.block->eip == eip && found.policy == policy;
  if (is_it) return found.block;
  // What is judged takes turns with what is not.
  Known& known = known_[privilege()][State::jump_index(eip) << 1 | (policy.logs() ? 1 : 0)];
  const Block* block = known.block;
  const bool may_run = block->eip == eip && known.policy == policy &&
                       s_->code_pages[block->page_index] == block->where;
  if (may_run) return block;
  block = look_up_block(eip, policy);
  if (block != nullptr && !block->crosses) known = {block, policy};
  return block;
}

/// As find_block(), for the first time.
const Block* FastTier::look_up_block(std::uint64_t eip, Policy policy) {
  if (eip > shape_.code_limit || (shape_.bits64 && !CpuContext::is_canonical(eip))) return nullptr;
  cpu_.position.instruction = position();
  fast::CodePlace place;
  place.eip = eip;
  place.linear = shape_.linear(eip);
  if (!find_code_page(place.linear, place.frame)) return nullptr;
  const LinearAddr next_page = cpu_.onward(place.linear.page_begin(), kPageSize);
  const bool may_cross = kPageSize - place.linear.offset_in_page() < kMaxInstructionBytes;
  if (may_cross) {
    // Not walked for yet: nothing may ever run there, and a TLB entry would come too early.
    const auto held = cpu_.mmu.held(next_page, Access::execute, cpu_.user_mode());
    place.has_second = held && cpu_.memory.is_mapped(held->frame.page());
    if (place.has_second) place.second_frame = held->frame;
  }
  check_pages();
  const Block* block = store_.find(place, shape_, policy);
  if (block == nullptr && may_cross && !place.has_second) {
    // The next instruction goes on there.
    place.has_second = find_code_page(next_page, place.second_frame);
    if (place.has_second) block = store_.find(place, shape_, policy);
  }
  if (store_.take_new_code()) {
    // Stores to it are to be noticed.
    for (auto& state : states_) {
      for (TlbEntry& entry : state->writes) entry.tag = TlbEntry::kNone;
    }
  }
  if (block == nullptr) return nullptr;
  if (!block->crosses) s_->code_pages[block->page_index] = block->where;
  return block;
}

/// Runs `block`, and what follows it in its policy, with the first area at `area`.
void FastTier::run_block(const Block& block, std::uint8_t* area) {
  State& s = *s_;
  s.block = &block;
  s.left -= block.count;
  s.set_interrupts = false;
  if (block.image != nullptr) std::memcpy(area, block.image, block.area_bytes);
  block.ops[0].handler(block.ops, &s, area, s.flags.z, s.flags.s, s.flags.c);
}

/// The block in progress was left: instructions that were made of it. The processor is before the
/// one at `eip_` then.
std::uint32_t FastTier::settle_block() {
  State& s = *s_;
  const Block& block = *s.block;
  switch (s.exit) {
    case Exit::branch:
      eip_ = s.next;
      return block.count;
    case Exit::tail:
      eip_ = block.eip_of(block.count);
      return block.count;
    case Exit::careful:
    case Exit::patched:
      break;
  }
  const std::uint32_t done = block.number_of(s.at);
  s.left += block.count - done;
  eip_ = block.eip_of(done);
  return done;
}

/// What the block in progress did to the flags was added as it ended.
bool FastTier::is_noted(const Block& block) const {
  return s_->exit == Exit::branch && !block.counts_shifts;
}

/// Adds what the first `count` instructions of a block, as they ran last, did to the flags.
void FastTier::note_flags(const Block& block, std::uint32_t count) {
  State& s = *s_;
  if (count == block.count && !block.counts_shifts) {
    s.untold = s.untold + block.flags;
    return;
  }
  const std::span<const std::uint8_t> counts(s.shift_counts.data(), s.shift_count);
  s.untold = s.untold + store_.flags_of(block, count, counts);
  s.shift_count = 0;
}

// ---------------------------------------------------------------------------------------------
// Where nothing is compared

void FastTier::run_quietly() {
  while (s_->left > 0 && run_stretch(false) == Stretch::ended) make_room();
}

/// Runs blocks, up to the limit at most. `whole_blocks`: none is cut short for it.
FastTier::Stretch FastTier::run_stretch(bool whole_blocks) {
  if (position() >= cpu_.audience.attending().until) attend();
  if (!cpu_.audience.attending().blocks && cpu_.audience.attending().passes) {
    return run_passing(whole_blocks);
  }
  // Records of 64 bits are those of 64-bit mode.
  if (records_ != nullptr && (shape_.bits64 || !cpu_.traits.has_long_mode)) {
    if (const auto room = records_->open({position(), 0})) return run_recorded(*room, whole_blocks);
  }
  return run_told(whole_blocks);
}

FastTier::Stretch FastTier::run_told(bool whole_blocks) {
  State& s = *s_;
  const Policy policy = with_trap(policy_);
  const Block* block = find_block(eip_, policy);
  if (block == nullptr) return Stretch::left;
  if (block->count > s.left && whole_blocks) return Stretch::too_long;
  const std::int64_t room = room_to_ask();
  if (block->count > room) block = &store_.cut(*block, static_cast<std::uint32_t>(room), policy);
  if (references_) return run_told_batch(*block, policy);
  run_block(*block, area_.data());
  return after_block(policy);
}

/// `block`, and what follows it, is told with what it accesses.
FastTier::Stretch FastTier::run_told_batch(const Block& block, Policy policy) {
  State& s = *s_;
  chain_logged(policy);
  const auto left = static_cast<std::uint32_t>(std::min<std::int64_t>(room_to_ask(), kMostTold));
  const std::uint32_t may_run = std::max(left, block.count);
  run_batch(block, may_run, may_run + 1);
  const BatchedBlock& last = s.batch[s.batched - 1];
  const std::uint32_t of_last = settle_block();
  if (exact_ && !is_noted(*last.block)) note_flags(*last.block, of_last);
  tell_batch(of_last, batch_first_);
  note_batch(of_last, batch_first_);
  return behind(*last.block, policy);
}

/// The same with the records of all that runs put one after the other.
FastTier::Stretch FastTier::run_recorded(const KtRecords::Room& room, bool whole_blocks) {
  State& s = *s_;
  const Policy policy = policy_for(Keep::kt_records);
  const std::uint64_t first = position();
  const auto may_run = static_cast<std::int64_t>(
      std::min<std::uint64_t>(room.until - first, static_cast<std::uint64_t>(s.left)));
  const Block* const block = find_block(eip_, policy);
  if (block == nullptr) return Stretch::left;
  if (block->count > may_run) return run_told(whole_blocks);
  chain(policy);
  const std::int64_t beyond = s.left - may_run;
  s.left = may_run;
  s.area_limit = room.at + room.bytes;
  run_block(*block, room.at);
  s.left += beyond;
  const Block& last = *s.block;
  const bool whole = s.exit == Exit::branch || s.exit == Exit::tail;
  const std::uint32_t done = whole ? last.count : last.number_of(s.at);
  const std::uint64_t made = position() - first - (last.count - done);
  records_->close(static_cast<std::size_t>(s.area - room.at) + last.areas[done], made);
  return after_block(policy);
}

/// What runs next goes from block to block in `policy`. Ways of indirect branches that were found
/// in another lead to blocks of that one.
void FastTier::chain(Policy policy) {
  if (chained_ == policy) return;
  chained_ = policy;
  for (auto& state : states_) state->jumps.fill(&fast::kNowhere);
}

/// The same of blocks whose accesses are kept.
void FastTier::chain_logged(Policy policy) {
  if (chained_logged_ == policy) return;
  chained_logged_ = policy;
  for (auto& state : states_) state->batch_jumps.fill(&fast::kNowhere);
}

/// After blocks that nobody judges. What ran from `passed_from` on has passed.
FastTier::Stretch FastTier::after_block(Policy policy, std::uint64_t passed_from) {
  State& s = *s_;
  const Block& block = *s.block;
  const std::uint32_t done = settle_block();
  if (exact_ && !is_noted(block)) note_flags(block, done);
  if (passed_from != kNothing) trail_.pass(passed_from, position());
  if (policy.stops()) {
    tell_block(block, done, position() - done, area_.data());
    note_block(block, done, position() - done, area_.data());
  }
  return behind(block, policy);
}

/// `block` was left, and all is told of it.
FastTier::Stretch FastTier::behind(const Block& block, Policy policy) {
  State& s = *s_;
  if (!walks_.empty()) [[unlikely]]
    tell_walks();
  if (s.exit == Exit::tail && block.tail == Block::Tail::string) return run_string(block);
  if (s.exit == Exit::patched) return Stretch::ended;
  if (s.exit != Exit::branch) return Stretch::left;
  if (s.left > 0 && !policy.stops()) link(block, policy);  // else come back each time
  return Stretch::ended;
}

/// Remembers the way from the block to the next one, if that leads to one that may be run like it.
void FastTier::link(const Block& block, Policy policy) {
  State& s = *s_;
  const Block* const next = find_block(eip_, policy);
  found_ = {next, policy};
  if (next == nullptr || next->crosses || next->count == 0 || block.eip == Block::kNoEip) return;
  if (s.exit_link == kIndirectLink) {
    (policy.logs() ? s.batch_jumps : s.jumps)[State::jump_index(eip_)] = next;
  } else {
    block.next[s.exit_link] = next;
  }
}

// ---------------------------------------------------------------------------------------------
// Strings

FastTier::Stretch FastTier::run_string(const Block& block) {
  State& s = *s_;
  if (s.left <= 0) return Stretch::left;
  const DecodedInstruction info = store_.decode_tail(block);
  string_ = &info;
  trail_.tell(cpu_.audience);
  if (cpu_.audience.wants_references()) tell_string_fetch(block);
  const bool nothing = info.is_repeated() && strings_.nothing_to_do(s, info);
  if (!nothing) {
    const bool complete = strings_.run(s, info, block.frame, kIterationsAtOnce);
    if (!complete) {
      iteration_ = info.is_repeated() ? strings_.iterations() : 0;
      return Stretch::left;
    }
  }
  if (nothing) tell_iterations(info, {}, 0, 0);
  if (exact_ && !nothing) s.untold = s.untold + flag_effect_of(info, 0);
  --s.left;
  eip_ = fast::offset_in_mode(eip_ + info.length, shape_.bits64);
  s.set_interrupts = false;
  return Stretch::ended;
}

}  // namespace citcat
