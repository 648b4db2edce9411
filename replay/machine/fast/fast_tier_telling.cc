// What the fast tier tells of the blocks and strings that it has made.

#include <algorithm>
#include <array>
#include <utility>

#include "replay/machine/fast/fast_tier.h"

namespace citcat {

using fast::BatchedBlock;
using fast::Block;
using fast::State;

/// Its first `count` instructions, the first number `first`, have put their addresses to `area`.
void FastTier::tell_block(const Block& block, std::uint32_t count, std::uint64_t first,
                          const std::uint8_t* area, std::span<const DataReference> references) {
  if (count == 0 || !cpu_.audience.attending().blocks) return;
  const BlockCode& code = *block.code;
  const auto* const addresses = reinterpret_cast<const std::uint32_t*>(area);
  if (count == block.count) {
    cpu_.audience.block(code, addresses, {first, 0}, references);
  } else {
    cpu_.audience.block(code.first(count), addresses, {first, 0}, references);
  }
}

namespace {

/// Has the lines of the host's cache fetched that whoever is told of the code looks at.
void fetch_ahead(const BlockCode& code) {
  __builtin_prefetch(&code);
  __builtin_prefetch(&code.notes());
}

}  // namespace

/// Tells the observers of the batch, of whose last block `of_last` instructions ran.
void FastTier::tell_batch(std::uint32_t of_last, std::uint64_t first) {
  if (!cpu_.audience.attending().blocks) return;
  const State& s = *s_;
  std::uint32_t told = 0;
  // What is told of a block was used when it ran last, and each part of it leads to the next.
  for (std::uint32_t i = 0; i < s.batched; ++i) fetch_ahead(*s.batch[i].block->code);
  if (cpu_.audience.takes_batches() && walks_.empty()) {
    const bool whole = of_last != 0 && of_last == s.batch[s.batched - 1].block->count;
    told = whole ? s.batched : s.batched - 1;
    tell_blocks(told, first);
  }
  for (std::uint32_t i = told; i < s.batched; ++i) {
    const BatchedBlock& b = s.batch[i];
    if (i + 1 < s.batched) __builtin_prefetch(s.batch[i + 1].block->code->notes().first());
    const std::uint32_t count = i + 1 == s.batched ? of_last : b.block->count;
    tell_block(*b.block, count, first + b.first, b.area, references_of(i, count));
  }
}

/// Tells the first `blocks` of the batch, all of each, in one go. No walks are among what they did.
void FastTier::tell_blocks(std::uint32_t blocks, std::uint64_t first) {
  if (blocks == 0) return;
  const State& s = *s_;
  blocks_told_.clear();
  for (std::uint32_t i = 0; i < blocks; ++i) {
    const BatchedBlock& b = s.batch[i];
    const std::uint32_t accesses = references_ ? end_of_log(i) - b.logged : 0;
    blocks_told_.push_back(cpu_.audience.as_told(*b.block->code,
                                                 reinterpret_cast<const std::uint32_t*>(b.area),
                                                 {s.log.data() + b.logged, accesses}));
  }
  const BatchedBlock& last = s.batch[blocks - 1];
  cpu_.audience.blocks(blocks_told_, {first, 0}, last.first + last.block->count);
}

/// What the first `count` instructions of a block accessed, that with this number in the batch.
std::span<const DataReference> FastTier::references_of(std::uint32_t number, std::uint32_t count) {
  if (!references_) return {};
  const State& s = *s_;
  const std::uint32_t begin = s.batch[number].logged, end = end_of_log(number);
  const std::span logged(s.log.data() + begin, end - begin);
  if (walks_.empty()) [[likely]]
    return logged;
  references_told_.assign(logged.begin(), logged.end());
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
  return references_told_;
}

void FastTier::note_walk(PhysAddr entry, std::uint32_t size) {
  if (walks_for_ == nullptr) {
    cpu_.audience.read(entry, size, AccessKind::walk, cpu_.position, false);
    return;
  }
  const std::uint32_t instruction = s_->block->number_of(walks_for_);
  const std::uint64_t at = cpu_.position.instruction + instruction;
  // No block is told with it.
  if (!references_) return cpu_.audience.read(entry, size, AccessKind::walk, {at, 0}, false);
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
  if (cpu_.audience.wants_references() && count != 0) {
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
