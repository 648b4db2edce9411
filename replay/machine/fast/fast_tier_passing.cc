// Plain code that nobody is told of block by block: it only counts itself, and leaves a trail where
// somebody asks for the last of it.

#include <algorithm>
#include <span>

#include "replay/machine/fast/fast_tier.h"

namespace citcat {

using fast::BatchedBlock;
using fast::Block;
using fast::Exit;
using fast::Keep;
using fast::Policy;
using fast::State;

/// Asks what is to be told of plain code from here on.
void FastTier::attend() {
  trail_.tell(cpu_.audience);
  // What is compared is kept with all that it accesses.
  const Audience::Attending& now = cpu_.audience.attend(position(), !exact_);
  references_ = now.references;
  policy_ = policy_for(now.references ? Keep::references
                       : now.blocks   ? Keep::addresses
                                      : Keep::nothing);
  if (trap_ != nullptr && trap_->size != 0 && !looks_for_trap()) trap_->met = true;
}

/// Stores to the trap are noticed, where the judge asks for nothing.
bool FastTier::looks_for_trap() const {
  const Audience::Attending& now = cpu_.audience.attending();
  return policy_ == Policy{Keep::nothing, true} && !now.counts && now.trail == 0;
}

/// How code runs that nobody is told of block by block.
Policy FastTier::passing_policy() const {
  const Audience::Attending& now = cpu_.audience.attending();
  if (now.stores) return policy_for(now.counts ? Keep::stores_trail : Keep::stores);
  if (now.trail != 0) return policy_for(Keep::trail);
  return with_trap(policy_for(now.counts ? Keep::counts : Keep::nothing));
}

/// Instructions that may run before somebody who was not told of blocks wants to be, and before the
/// limit.
std::int64_t FastTier::room_to_ask() const {
  const Audience::Attending& now = cpu_.audience.attending();
  if (!now.passes) return s_->left;
  const std::uint64_t room = now.until - std::min(now.until, position());
  return static_cast<std::int64_t>(
      std::min(std::max<std::uint64_t>(room, 1), static_cast<std::uint64_t>(s_->left)));
}

/// Blocks that nobody is told of one by one, up to where somebody wants to be asked again.
FastTier::Stretch FastTier::run_passing(bool whole_blocks) {
  State& s = *s_;
  const Policy policy = passing_policy();
  const std::int64_t may_run = room_to_ask();
  const Block* const block = find_block(eip_, policy);
  if (block == nullptr) return Stretch::left;
  if (block->count > s.left && whole_blocks) return Stretch::too_long;
  chain(policy);
  if (block->count > may_run) {
    // It is told from there on, or nothing may run beyond.
    const Block& part = store_.cut(*block, static_cast<std::uint32_t>(may_run), policy);
    return run_passing_blocks(part, policy, part.count);
  }
  return run_passing_blocks(*block, policy, may_run);
}

FastTier::Stretch FastTier::run_passing_blocks(const Block& block, Policy policy,
                                               std::int64_t may_run) {
  State& s = *s_;
  const std::uint64_t first = position();
  const std::int64_t beyond = s.left - may_run;
  s.left = may_run;
  limit_ -= static_cast<std::uint64_t>(beyond);
  s.next_store = cpu_.audience.attending().stores ? s.stores.data() : nullptr;
  s.area_begin = area_.data();
  s.area_limit = area_.data() + fast::kAreaBytes;
  s.trail[0] = {&block, area_.data()};
  s.trailed = 1;
  // The handlers count what follows the first.
  const bool counts = policy.counts();
  if (counts && block.count != 0 && !store_.is_cut(block)) s.count(block);
  run_block(block, area_.data());
  s.left += beyond;
  limit_ += static_cast<std::uint64_t>(beyond);
  if (counts) uncount_rest();
  const std::span<const PlainStore> stored = s.take_stores();
  if (!stored.empty()) cpu_.audience.stores(stored, {first, 0});
  if (policy.trails()) keep_trail();
  return after_block(policy, first);
}

/// The block in progress was counted as a whole. Where it was left before its end, it is told as
/// the part that it was; and so is a cut one, which was not counted.
void FastTier::uncount_rest() {
  const State& s = *s_;
  const Block& block = *s.block;
  const std::uint32_t done = s.done_of_last();
  if (!store_.is_cut(block)) {
    if (s.exit == Exit::branch || s.exit == Exit::tail) return;
    overcounted_.push_back(&block);
  }
  if (done != 0) cpu_.audience.counted(block.code->first(done), 1);
}

/// The batch was told to some; others want counts of it, or its trail.
void FastTier::note_batch(std::uint32_t of_last, std::uint64_t first) {
  const Audience::Attending& now = cpu_.audience.attending();
  if (!now.passes) return;
  State& s = *s_;
  if (now.counts) {
    for (std::uint32_t i = 0; i < s.batched; ++i) {
      const Block& block = *s.batch[i].block;
      const std::uint32_t count = i + 1 == s.batched ? of_last : block.count;
      if (count == 0) continue;
      if (count == block.count && !store_.is_cut(block)) {
        s.count(block);
      } else {
        cpu_.audience.counted(block.code->first(count), 1);
      }
    }
  }
  if (now.trail != 0) keep_trail_of_batch();
  trail_.pass(first, position());
}

/// The same of one block.
void FastTier::note_block(const Block& block, std::uint32_t count, std::uint64_t first,
                          const std::uint8_t* area) {
  const Audience::Attending& now = cpu_.audience.attending();
  if (!now.passes || count == 0) return;
  if (now.counts && count == block.count && !store_.is_cut(block)) {
    s_->count(block);
  } else if (now.counts) {
    cpu_.audience.counted(block.code->first(count), 1);
  }
  if (now.trail != 0) keep_in_trail(block, count, first, area);
  trail_.pass(first, first + count);
}

/// Keeps the last blocks that have passed, as many as the trail has to have.
void FastTier::keep_trail() {
  const State& s = *s_;
  const auto at = [&](std::uint64_t i) -> const fast::TrailedBlock& {
    return s.trail[i % State::kTrail];
  };
  const std::uint32_t of_last = s.done_of_last();
  const std::uint32_t wanted = cpu_.audience.attending().trail;
  const std::uint64_t oldest = s.trailed - std::min<std::uint64_t>(s.trailed, State::kTrail);
  std::uint64_t from = s.trailed - 1;
  std::uint32_t instructions = of_last;
  while (from != oldest && instructions < wanted) instructions += at(--from).block->count;
  // The position is behind all of the last one.
  std::uint64_t first = position() - (s.block->count - of_last) - instructions;
  for (; from != s.trailed; ++from) {
    const fast::TrailedBlock& b = at(from);
    const std::uint32_t count = from + 1 == s.trailed ? of_last : b.block->count;
    keep_in_trail(*b.block, count, first, b.area);
    first += count;
  }
}

/// The same of the batch.
void FastTier::keep_trail_of_batch() {
  const State& s = *s_;
  const std::uint32_t of_last = s.done_of_last();
  const std::uint32_t wanted = cpu_.audience.attending().trail;
  const std::uint32_t all = s.batch[s.batched - 1].first + of_last;
  std::uint32_t from = s.batched - 1;
  while (from != 0 && all - s.batch[from].first < wanted) --from;
  for (std::uint32_t i = from; i < s.batched; ++i) {
    const BatchedBlock& b = s.batch[i];
    const std::uint32_t count = i + 1 == s.batched ? of_last : b.block->count;
    keep_in_trail(*b.block, count, batch_first_ + b.first, b.area);
  }
}

void FastTier::keep_in_trail(const Block& block, std::uint32_t count, std::uint64_t first,
                             const std::uint8_t* area) {
  trail_.keep(*block.code, store_.is_cut(block), count, first, area, block.areas[count]);
}

}  // namespace citcat
