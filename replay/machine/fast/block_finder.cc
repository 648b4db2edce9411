#include "replay/machine/fast/block_finder.h"

#include <utility>

#include "replay/machine/fast/handlers_branch.h"

namespace citcat::fast {

BlockFinder::BlockFinder(CpuContext& cpu, TierState& state, HandlerPages& pages, BlockStore& store)
    : cpu_(cpu), t_(state), pages_(pages), store_(store) {}

void BlockFinder::begin() {
  found_ = {};
  CodeShape& last = shapes_[t_.privilege()];
  if (last == t_.shape) return;
  last = t_.shape;
  forget_ways(t_.privilege());
}

void BlockFinder::forget() {
  found_ = {};
  for (std::size_t i = 0; i < TierState::kPrivileges; ++i) forget_ways(i);
}

void BlockFinder::forget_ways(std::size_t privilege) {
  t_.states[privilege]->jumps.fill(&kNowhere);
  t_.states[privilege]->batch_jumps.fill(&kNowhere);
  known_[privilege].fill({});
}

const Block* BlockFinder::find(std::uint64_t eip, Policy policy) {
  const Known found = std::exchange(found_, {});
  const bool is_it = found.block != nullptr && found.block->eip == eip && found.policy == policy;
  if (is_it) return found.block;
  // Judged and unjudged stretches alternate.
  Known& known = known_[t_.privilege()][State::jump_index(eip) << 1 | (policy.logs() ? 1 : 0)];
  const Block* block = known.block;
  const bool may_run = block->eip == eip && known.policy == policy &&
                       t_.in_use->code_pages[block->page_index] == block->where;
  if (may_run) return block;
  block = look_up(eip, policy);
  if (block != nullptr && !block->crosses) known = {block, policy};
  return block;
}

/// Looks in the store, which makes the block if it has none.
const Block* BlockFinder::look_up(std::uint64_t eip, Policy policy) {
  if (eip > t_.shape.code_limit) return nullptr;
  if (t_.shape.bits64 && !CpuContext::is_canonical(eip)) return nullptr;
  cpu_.position.instruction = t_.position();
  CodePlace place;
  place.eip = eip;
  place.linear = t_.shape.linear(eip);
  if (!pages_.find_code(place.linear, place.frame)) return nullptr;
  const LinearAddr next_page = cpu_.onward(place.linear.page_begin(), kPageSize);
  const bool may_cross = kPageSize - place.linear.offset_in_page() < kMaxInstructionBytes;
  if (may_cross) {
    // Without a page walk: the code may never go on there, and a TLB entry would come too early.
    const auto held = cpu_.mmu.look_up(next_page, Access::execute, cpu_.program(), Lookup::held);
    place.has_second = held && cpu_.memory.is_mapped(held->frame.page());
    if (place.has_second) place.second_frame = held->frame;
  }
  pages_.check();
  const Block* block = store_.find(place, t_.shape, policy);
  if (block == nullptr && may_cross && !place.has_second) {
    // The first instruction goes on there.
    place.has_second = pages_.find_code(next_page, place.second_frame);
    if (place.has_second) block = store_.find(place, t_.shape, policy);
  }
  // The tier has to notice stores to it.
  if (store_.take_new_code()) pages_.forget_writes();
  if (block == nullptr) return nullptr;
  if (!block->crosses) t_.in_use->code_pages[block->page_index] = block->where;
  return block;
}

void BlockFinder::chain(Policy policy) {
  std::optional<Policy>& chained = policy.logs() ? chained_logged_ : chained_;
  if (chained == policy) return;
  chained = policy;
  for (auto& state : t_.states) {
    (policy.logs() ? state->batch_jumps : state->jumps).fill(&kNowhere);
  }
}

void BlockFinder::link(const Block& block, Policy policy) {
  State& s = *t_.in_use;
  const Block* const next = find(t_.eip, policy);
  found_ = {next, policy};
  if (next == nullptr || next->crosses || next->count == 0 || block.eip == Block::kNoEip) return;
  if (s.exit_link == kIndirect) {
    (policy.logs() ? s.batch_jumps : s.jumps)[State::jump_index(t_.eip)] = next;
  } else {
    block.next[s.exit_link] = next;
  }
}

}  // namespace citcat::fast
