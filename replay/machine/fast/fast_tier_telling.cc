// What the fast tier tells of the blocks and strings that it has made.

#include <algorithm>
#include <array>
#include <utility>

#include "replay/machine/fast/fast_tier.h"

namespace citcat {

using fast::Block;
using fast::State;

/// Its first `count` instructions, the first number `first`, have put their addresses to `area`.
void FastTier::tell_block(const Block& block, std::uint32_t count, std::uint64_t first,
                          const std::uint8_t* area) {
  if (count == 0 || !cpu_.audience.hears_instructions()) return;
  const BlockCode& code = *block.code;
  const auto* const addresses = reinterpret_cast<const std::uint32_t*>(area);
  const std::span<const DataReference> references(references_told_.data(), references_count_);
  if (count == block.count) {
    cpu_.audience.block(code, addresses, {first, 0}, references);
  } else {
    cpu_.audience.block(code.first(count), addresses, {first, 0}, references);
  }
}

/// Makes `references_told_` of what the first `count` instructions of a block accessed, that with
/// this number in the batch.
void FastTier::gather_references(std::uint32_t number, std::uint32_t count) {
  const State& s = *s_;
  const Block& block = *s.batch[number].block;
  const std::uint32_t begin = s.batch[number].logged;
  const std::uint32_t end = number + 1 < s.batched ? s.batch[number + 1].logged : s.logged;
  const std::size_t most = end - begin;
  // Its size is only lowered where something is inserted.
  if (!walks_.empty() || references_told_.size() < most) references_told_.resize(most);
  DataReference* out = references_told_.data();
  for (std::uint32_t i = begin; i < end; ++i) {
    const fast::LoggedAccess& access = s.log[i];
    if (only_stores_ && !access.write) continue;
    out->physical = PhysAddr{access.physical};
    out->linear = LinearAddr{access.linear};
    out->value = access.after;
    out->size = access.size;
    out->instruction = static_cast<std::uint16_t>(block.number_of(access.op));
    out->kind = AccessKind::data;
    out->write = access.write;
    ++out;
  }
  references_count_ = static_cast<std::size_t>(out - references_told_.data());
  if (walks_.empty()) [[likely]] return;
  // From the last one on, so that the places of those before stay. The rest is of what did not
  // complete.
  const auto made = std::partition_point(walks_.begin(), walks_.end(), [&](const NotedWalk& w) {
    return w.block == number && w.instruction < count;
  });
  for (auto w = made; w != walks_.begin();) {
    --w;
    DataReference walk;
    walk.physical = w->entry;
    walk.size = static_cast<std::uint16_t>(w->size);
    walk.instruction = static_cast<std::uint16_t>(w->instruction);
    walk.kind = AccessKind::walk;
    references_told_.insert(references_told_.begin() + (w->logged - begin), walk);
  }
  walks_.erase(walks_.begin(), made);
  references_count_ = references_told_.size();
}

void FastTier::note_walk(PhysAddr entry, std::uint32_t size) {
  if (walks_for_ == nullptr) {
    cpu_.audience.read(entry, size, AccessKind::walk, cpu_.position, false);
    return;
  }
  const std::uint32_t instruction = s_->block->number_of(walks_for_);
  const std::uint64_t at = cpu_.position.instruction + instruction;
  // No block is told with it.
  if (at < attended_from_)
    return cpu_.audience.read(entry, size, AccessKind::walk, {at, 0}, false);
  walks_.push_back({entry, size, s_->batched - 1, s_->logged, instruction});
}

/// Those that no block was told with.
void FastTier::tell_walks() {
  for (const NotedWalk& w : walks_) {
    cpu_.audience.read(w.entry, w.size, AccessKind::walk, {position(), 0}, false);
  }
  walks_.clear();
}

void FastTier::tell_counts() {
  for (const Block* const block : overcounted_) --block->executions;
  overcounted_.clear();
  for (const auto& state : states_) {
    const Block* block = std::exchange(state->counted, nullptr);
    while (block != nullptr) {
      const std::uint64_t executions = std::exchange(block->executions, 0);
      if (executions != 0) cpu_.audience.counted(*block->code, executions);
      block = block->next_counted;
    }
  }
}

/// The string at the end of `block` is fetched, as what runs alone is.
void FastTier::tell_string_fetch(const Block& block) {
  const LinearAddr at = shape_.linear(eip_);
  const Position now{position(), 0};
  const std::uint32_t here =
      std::min<std::uint32_t>(string_->length, kPageSize - at.offset_in_page());
  cpu_.audience.fetch(block.frame.plus32(at.offset_in_page()), here, now, false);
  if (here == string_->length) return;
  cpu_.audience.fetch(block.second_frame, string_->length - here, now, false);
}

void FastTier::tell_iterations(const DecodedInstruction& info,
                               const std::array<fast::StringLoop::Operand, 2>& first,
                               std::uint32_t count, std::int32_t step) {
  if (!cpu_.audience.hears_instructions()) return;
  ExecutedInstruction e;
  e.info = &info;
  e.eip = static_cast<std::uint32_t>(eip_);
  e.linear = shape_.linear(eip_);
  e.physical = s_->block->frame.plus32(e.linear.offset_in_page());
  e.ea_count = count == 0 ? std::uint8_t{0} : info.ea_count;
  for (unsigned i = 0; i < e.ea_count; ++i) e.ea[i] = first[info.ea[i].argument].linear;
  std::array<DataReference, 2> references;
  if (references_ && count != 0) {
    for (unsigned i = 0; i < info.operand_count; ++i) {
      references[i].physical = first[i].at;
      references[i].linear = first[i].linear;
      references[i].size = info.operands[i].size;
      references[i].write = info.operands[i].write;
    }
    e.references = std::span(references).first(info.operand_count);
  }
  const Position now{position(), strings_.iterations()};
  if (info.is_repeated() && count != 0 && shape_.bits64) {
    for (std::uint32_t i = 0; i < count; ++i) {
      cpu_.audience.iteration(e, {now.instruction, now.iteration + i});
      for (LinearAddr& ea : e.ea) ea.value += static_cast<std::uint64_t>(std::int64_t{step});
      for (DataReference& r : references) {
        r.linear.value += static_cast<std::uint64_t>(std::int64_t{step});
        r.physical = r.physical.plus32(static_cast<std::uint32_t>(step));
      }
    }
  } else if (info.is_repeated() && count != 0) {
    cpu_.audience.iterations(e, count, static_cast<std::uint32_t>(step), now);
  } else {
    cpu_.audience.instruction(e, {now.instruction, 0}, false);
  }
}

}  // namespace citcat
