#include "replay/machine/fast/fast_tier.h"

#include <algorithm>
#include <span>

#include "replay/machine/units/debug_unit.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

using fast::BatchedBlock;
using fast::Block;
using fast::BlockJudging;
using fast::Exit;
using fast::Keep;
using fast::Policy;
using fast::State;

namespace {

/// Instructions that are reported together.
constexpr std::uint64_t kMaxReported = 128;

StoreTrap* trap_of(BlockJudge* judge) { return judge != nullptr ? judge->store_trap() : nullptr; }

}  // namespace

FastTier::FastTier(CpuContext& cpu, InFlight& flight, Expectation& expectation, DebugUnit& debug)
    : cpu_(cpu),
      flight_(flight),
      expectation_(expectation),
      debug_(debug),
      exact_(expectation.compares),
      trap_(trap_of(cpu.audience.judge())),
      store_(cpu.model, cpu.memory),
      pages_(cpu, t_, exact_),
      finder_(cpu, t_, pages_, store_),
      runner_(t_, store_),
      reporter_(cpu, t_, runner_, store_),
      resolver_(cpu, t_, pages_, store_, runner_, reporter_),
      judging_(cpu, expectation, t_, reporter_, trap_),
      strings_(cpu, expectation, t_, pages_, store_, reporter_) {
  cpu.memory.set_watcher(*this);
}

bool FastTier::applies() {
  // The reads of an instruction that is begun again were reported already.
  const bool begun = flight_.active || flight_.resuming || flight_.reads_to_skip != 0;
  if (!cpu_.by_blocks || begun || cpu_.position.iteration != 0 || cpu_.polling ||
      debug_.pending() != 0 || debug_.watches_code() ||
      (cpu_.engine.system_flags() & kFlagTf) != 0 || cpu_.engine.inhibited() ||
      t_.keeps_upper_halves()) {
    return false;
  }
  cpu_.find_block_limit();
  return cpu_.position.instruction < cpu_.blocks_until;
}

void FastTier::begin() {
  pages_.check();
  t_.take();
  finder_.begin();
  attend();
  set_trap();
}

void FastTier::end() {
  State& s = *t_.in_use;
  t_.give_back();
  if (s.trapped) trap_->met = true;
  reporter_.report_trail();
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

void FastTier::stored(PhysAddr at, std::uint32_t size) {
  if (trap_ != nullptr && overlap(at, size, trap_->address, trap_->size)) trap_->met = true;
  store_.stored(at, size);
}

/// Forgets all blocks where they take too much memory. Only between blocks.
void FastTier::make_room() {
  if (!store_.full()) return;
  reporter_.report_trail();
  reporter_.report_counts();
  store_.clear();
  finder_.forget();
}

// ---------------------------------------------------------------------------------------------
// What the handlers record, for whom

/// Asks the observers what they want to know from here on.
void FastTier::attend() {
  reporter_.report_trail();
  // A comparison keeps all accesses anyway.
  const JointInterest& now = cpu_.audience.ask(t_.position(), !exact_);
  if (cpu_.audience.counts_for_others()) {
    reporter_.report_counts();
    cpu_.audience.begin_counts();
  }
  // Blocks that are judged may have accesses that do not follow from their addresses.
  reporter_.references = now.references() || (exact_ && now.accesses());
  for (const auto& state : t_.states) state->tells_accesses = now.references();
  policy_ = policy_for(now.references() ? Keep::references
                       : now.blocks()   ? Keep::addresses
                                        : Keep::nothing);
  if (trap_ != nullptr && trap_->size != 0 && !looks_for_trap()) trap_->met = true;
}

/// `policy`, or the one in its place that looks for the trap if there is one.
Policy FastTier::with_trap(Policy policy) const {
  const bool looks = t_.in_use->trap != nullptr && policy == Policy{Keep::nothing, true};
  return looks ? Policy{Keep::stores, true} : policy;
}

/// Gives the handlers the place of the trap. Only those of Keep::stores look for it.
void FastTier::set_trap() {
  State& s = *t_.in_use;
  s.trapped = false;
  s.trap = nullptr;
  if (trap_ == nullptr || trap_->size == 0) return;
  if (!looks_for_trap() || judging_.quiet_end() < t_.limit) trap_->met = true;
  // The tier never stores to an address that is not mapped.
  s.trap = cpu_.memory.host(trap_->address);
  s.trap_bytes = trap_->size;
}

/// The handlers look for stores to the trap where the judge asks for nothing.
bool FastTier::looks_for_trap() const {
  const JointInterest& now = cpu_.audience.interest();
  return policy_ == Policy{Keep::nothing, true} && !now.counts() && now.trail == 0;
}

/// How code runs that is not reported block by block.
Policy FastTier::passing_policy() const {
  const JointInterest& now = cpu_.audience.interest();
  if (now.stores()) return policy_for(now.counts() ? Keep::stores_trail : Keep::stores);
  if (now.trail != 0) return policy_for(Keep::trail);
  return with_trap(policy_for(now.counts() ? Keep::counts : Keep::nothing));
}

/// Instructions that may run before an observer has to be asked again, and before the limit.
std::int64_t FastTier::room_to_ask() const {
  const JointInterest& now = cpu_.audience.interest();
  if (!now.passes()) return t_.in_use->left;
  const std::uint64_t room = now.until - std::min(now.until, t_.position());
  return static_cast<std::int64_t>(
      std::min(std::max<std::uint64_t>(room, 1), static_cast<std::uint64_t>(t_.in_use->left)));
}

// ---------------------------------------------------------------------------------------------
// In a comparison, where the judge may expect something

void FastTier::run_judged() {
  State& s = *t_.in_use;
  while (s.left > 0) {
    make_room();
    const std::uint64_t end = judging_.quiet_end();
    if (end > t_.position()) {
      // The judge need not see what runs before.
      Stretch stretch = Stretch::ended;
      {
        const fast::ShorterRun shorter(t_, static_cast<std::int64_t>(end - t_.position()));
        stretch = run_stretch(true);
      }
      if (stretch == Stretch::left) return;
      if (stretch == Stretch::ended) continue;
    }
    if (!judge_blocks()) return;
  }
}

/// Runs blocks and has them judged as one. False where the tier must leave the next instruction.
bool FastTier::judge_blocks() {
  State& s = *t_.in_use;
  const std::uint64_t first = t_.position();
  if (first >= cpu_.audience.interest().until) attend();
  constexpr Policy kLogged{Keep::references, true};
  finder_.chain(kLogged);
  const Block* block = finder_.find(t_.eip, kLogged);
  if (block == nullptr) return false;
  const std::int64_t most = room_to_ask();
  if (block->count > most) {
    block = &store_.cut(*block, static_cast<std::uint32_t>(most), kLogged);
  }
  // A string in which the judge expects something runs iteration by iteration (StringRunner).
  if (block->count == 0 || judging_.is_careful(first)) return false;
  const BlockJudge::BatchRoom room = judging_.ask(*block, first, room_to_ask());
  if (room.may_run < block->count) return false;
  const BlockJudging::Undo undo = judging_.undo();
  runner_.run_batch(*block, room.may_run, room.due);
  const BatchedBlock& last = s.batch[s.batched - 1];
  const std::uint32_t done = last.first + runner_.settle();
  if (done == 0) {
    s.untold = undo.untold;
    s.shift_count = 0;
    reporter_.report_walks();
    return s.exit == Exit::patched;
  }
  if (!judging_.agrees(done, first)) {
    judging_.take_back(undo, first, done);
    reporter_.report_walks();
    return s.batched != 1;
  }
  const std::uint32_t of_last = done - last.first;
  if (!runner_.is_noted(*last.block)) runner_.note_flags(*last.block, of_last);
  s.shift_count = 0;
  reporter_.report_batch(of_last, first);
  reporter_.note_batch(of_last, first);
  reporter_.report_walks();
  if (s.exit == Exit::patched) return true;
  if (s.exit == Exit::branch) {
    if (s.left > 0) finder_.link(*last.block, kLogged);
    return true;
  }
  return is_quiet_string(*last.block) && strings_.run(*last.block);
}

/// The block in progress was left for a string instruction that the judge need not see.
bool FastTier::is_quiet_string(const Block& block) {
  if (t_.in_use->exit != Exit::tail || block.tail != Block::Tail::string) return false;
  expectation_.update();
  return judging_.quiet_end() > t_.position();
}

// ---------------------------------------------------------------------------------------------
// Without a comparison, or where the judge expects nothing

void FastTier::run_quietly() {
  while (t_.in_use->left > 0 && run_stretch(false) == Stretch::ended) make_room();
}

/// Runs blocks, up to the limit at most. `whole_blocks`: none is cut short for it.
FastTier::Stretch FastTier::run_stretch(bool whole_blocks) {
  if (t_.position() >= cpu_.audience.interest().until) attend();
  const JointInterest& now = cpu_.audience.interest();
  if (!now.blocks() && now.passes()) return run_passing(whole_blocks);
  // Records of 64 bits are those of 64-bit mode.
  if (now.records() && (t_.shape.bits64 || !cpu_.traits.has_long_mode)) {
    const RecordRoom room = cpu_.audience.record_room({t_.position(), 0});
    if (room.at != nullptr) return run_recorded(room, whole_blocks);
  }
  return run_observed(whole_blocks);
}

/// Runs blocks that write their KT records one after the other.
FastTier::Stretch FastTier::run_recorded(const RecordRoom& room, bool whole_blocks) {
  State& s = *t_.in_use;
  const Policy policy = policy_for(Keep::kt_records);
  const std::uint64_t first = t_.position();
  const auto may_run = static_cast<std::int64_t>(
      std::min<std::uint64_t>(room.until - first, static_cast<std::uint64_t>(s.left)));
  const Block* const block = finder_.find(t_.eip, policy);
  if (block == nullptr) return Stretch::left;
  if (block->count > may_run) return run_observed(whole_blocks);
  finder_.chain(policy);
  s.area_limit = room.at + room.bytes;
  {
    const fast::ShorterRun shorter(t_, may_run);
    runner_.run(*block, room.at);
  }
  const Block& last = *s.block;
  const bool whole = s.exit == Exit::branch || s.exit == Exit::tail;
  const std::uint32_t done = whole ? last.count : last.number_of(s.at);
  const std::uint64_t made = t_.position() - first - (last.count - done);
  cpu_.audience.recorded(static_cast<std::size_t>(s.area - room.at) + last.areas[done], made);
  return after_blocks(policy);
}

FastTier::Stretch FastTier::run_observed(bool whole_blocks) {
  State& s = *t_.in_use;
  const Policy policy = with_trap(policy_);
  const Block* block = finder_.find(t_.eip, policy);
  if (block == nullptr) return Stretch::left;
  if (block->count > s.left && whole_blocks) return Stretch::too_long;
  const std::int64_t room = room_to_ask();
  if (block->count > room) block = &store_.cut(*block, static_cast<std::uint32_t>(room), policy);
  finder_.chain(policy);
  if (policy.batches()) return run_observed_batch(*block, policy);
  runner_.run(*block, runner_.area());
  return after_blocks(policy);
}

/// Runs and reports `block` and its successors, no further than to where an observer is to be asked
/// again.
FastTier::Stretch FastTier::run_observed_batch(const Block& block, Policy policy) {
  State& s = *t_.in_use;
  const std::uint64_t asked = cpu_.audience.interest().until;
  const std::uint64_t before_asked = asked - std::min(asked, t_.position());
  const auto room = static_cast<std::uint64_t>(room_to_ask());
  const auto left =
      static_cast<std::uint32_t>(std::min<std::uint64_t>({room, before_asked, kMaxReported}));
  const std::uint32_t may_run = std::max(left, block.count);
  runner_.run_batch(block, may_run, may_run + 1);
  const BatchedBlock& last = s.batch[s.batched - 1];
  const std::uint32_t of_last = settle();
  reporter_.report_batch(of_last, runner_.batch_first());
  reporter_.note_batch(of_last, runner_.batch_first());
  return behind(*last.block, policy);
}

/// Runs blocks that are not reported one by one, up to where an observer has to be asked again.
FastTier::Stretch FastTier::run_passing(bool whole_blocks) {
  State& s = *t_.in_use;
  const Policy policy = passing_policy();
  const std::int64_t may_run = room_to_ask();
  const Block* const block = finder_.find(t_.eip, policy);
  if (block == nullptr) return Stretch::left;
  if (block->count > s.left && whole_blocks) return Stretch::too_long;
  finder_.chain(policy);
  if (block->count > may_run) {
    // From there on blocks are reported, or nothing may run.
    const Block& part = store_.cut(*block, static_cast<std::uint32_t>(may_run), policy);
    return run_passing_blocks(part, policy, part.count);
  }
  return run_passing_blocks(*block, policy, may_run);
}

FastTier::Stretch FastTier::run_passing_blocks(const Block& block, Policy policy,
                                               std::int64_t may_run) {
  State& s = *t_.in_use;
  const std::uint64_t first = t_.position();
  s.next_store = cpu_.audience.interest().stores() ? s.stores.data() : nullptr;
  s.area_begin = runner_.area();
  s.area_limit = runner_.area() + fast::kAreaBytes;
  s.trail[0] = {&block, runner_.area()};
  s.trailed = 1;
  // The handlers count what follows the first.
  const bool counts = policy.counts();
  if (counts && block.count != 0 && !store_.is_cut(block)) s.count(block);
  {
    const fast::ShorterRun shorter(t_, may_run);
    runner_.run(block, runner_.area());
  }
  if (counts) reporter_.uncount_rest();
  const std::span<const PlainStore> stored = s.take_stores();
  if (!stored.empty()) cpu_.audience.stored(stored, {first, 0});
  if (policy.trails()) reporter_.keep_trail();
  const Block& last = *s.block;
  settle();
  reporter_.pass(first, t_.position());
  return behind(last, policy);
}

/// Settles the block in progress, which is not judged. Gives the number of instructions that ran.
std::uint32_t FastTier::settle() {
  const Block& block = *t_.in_use->block;
  const std::uint32_t done = runner_.settle();
  if (exact_ && !runner_.is_noted(block)) runner_.note_flags(block, done);
  return done;
}

/// Goes on after blocks that are not reported, or were by their records.
FastTier::Stretch FastTier::after_blocks(Policy policy) {
  const Block& block = *t_.in_use->block;
  settle();
  return behind(block, policy);
}

/// Goes on after `block`, which was left and is reported.
FastTier::Stretch FastTier::behind(const Block& block, Policy policy) {
  State& s = *t_.in_use;
  reporter_.report_walks();
  if (s.exit == Exit::tail && block.tail == Block::Tail::string) {
    return strings_.run(block) ? Stretch::ended : Stretch::left;
  }
  if (s.exit == Exit::patched) return Stretch::ended;
  if (s.exit != Exit::branch) return Stretch::left;
  if (s.left > 0) finder_.link(block, policy);
  return Stretch::ended;
}

}  // namespace citcat
