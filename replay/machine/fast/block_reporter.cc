#include "replay/machine/fast/block_reporter.h"

#include <algorithm>
#include <utility>

namespace citcat::fast {

namespace {

/// Prefetches what observers of the code look at first.
void fetch_ahead(const BlockCode& code) {
  __builtin_prefetch(&code);
  __builtin_prefetch(&code.notes());
}

const LinearAddr* addresses_at(const std::uint8_t* area) {
  return reinterpret_cast<const LinearAddr*>(area);
}

}  // namespace

BlockReporter::BlockReporter(CpuContext& cpu, TierState& state, BlockRunner& runner,
                             BlockStore& store)
    : cpu_(cpu), t_(state), runner_(runner), store_(store) {}

void BlockReporter::report_batch(std::uint32_t of_last, std::uint64_t first) {
  if (!cpu_.audience.interest().blocks()) return;
  const State& s = *t_.in_use;
  std::uint32_t reported = 0;
  // The notes of a block were last used when it ran last.
  for (std::uint32_t i = 0; i < s.batched; ++i) fetch_ahead(*s.batch[i].block->code);
  if (walks_.empty()) [[likely]] {
    const bool whole = of_last != 0 && of_last == s.batch[s.batched - 1].block->count;
    reported = whole ? s.batched : s.batched - 1;
    report_blocks(reported, first);
  }
  for (std::uint32_t i = reported; i < s.batched; ++i) {
    report_part(i, i + 1 == s.batched ? of_last : s.batch[i].block->count, first);
  }
}

/// Reports the first `blocks` of the batch, each as a whole, in one call. No walk is among them.
void BlockReporter::report_blocks(std::uint32_t blocks, std::uint64_t first) {
  if (blocks == 0) return;
  const State& s = *t_.in_use;
  batch_blocks_.clear();
  for (std::uint32_t i = 0; i < blocks; ++i) {
    const BatchedBlock& b = s.batch[i];
    const std::uint32_t accesses = references ? end_of_log(i) - b.logged : 0;
    batch_blocks_.emplace_back(*b.block->code, addresses_at(b.area),
                               std::span(s.log.data() + b.logged, accesses));
  }
  const BatchedBlock& last = s.batch[blocks - 1];
  cpu_.audience.ran(batch_blocks_, {first, 0}, last.first + last.block->count);
}

/// Reports the first `count` instructions of block `number` of the batch that begins at `first`.
void BlockReporter::report_part(std::uint32_t number, std::uint32_t count, std::uint64_t first) {
  if (count == 0) return;
  const BatchedBlock& b = t_.in_use->batch[number];
  const BlockCode& code = *b.block->code;
  const auto accesses = references_of(number, count);
  const Position begin{first + b.first, 0};
  if (count == b.block->count) {
    return cpu_.audience.ran({code, addresses_at(b.area), accesses}, begin);
  }
  const BlockCode part = code.first(count);
  cpu_.audience.ran({part, addresses_at(b.area), accesses}, begin);
}

/// The accesses of the first `count` instructions of block `number` of the batch.
std::span<const DataReference> BlockReporter::references_of(std::uint32_t number,
                                                            std::uint32_t count) {
  if (!references) return {};
  const State& s = *t_.in_use;
  const std::uint32_t begin = s.batch[number].logged, end = end_of_log(number);
  const std::span logged(s.log.data() + begin, end - begin);
  if (walks_.empty()) [[likely]]
    return logged;
  block_references_.assign(logged.begin(), logged.end());
  // From the last one on, so that the places of those before stay. The other walks are for
  // instructions that did not complete.
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
    block_references_.insert(block_references_.begin() + (w->logged - begin), walk);
  }
  walks_.erase(walks_.begin(), made);
  return block_references_;
}

void BlockReporter::note_walk(PhysAddr entry, std::uint32_t size) {
  if (walks_for_ == nullptr) {
    cpu_.audience.read(entry, size, AccessKind::walk, cpu_.position, false);
    return;
  }
  const std::uint32_t instruction = t_.in_use->block->number_of(walks_for_);
  const std::uint64_t at = cpu_.position.instruction + instruction;
  if (!references) return cpu_.audience.read(entry, size, AccessKind::walk, {at, 0}, false);
  walks_.push_back({entry, size, t_.in_use->batched - 1, t_.in_use->logged, instruction});
}

void BlockReporter::report_walks() {
  for (const NotedWalk& w : walks_) {
    cpu_.audience.read(w.entry, w.size, AccessKind::walk, {t_.position(), 0}, false);
  }
  walks_.clear();
}

void BlockReporter::report_counts() {
  for (const Block* const block : overcounted_) --block->executions;
  overcounted_.clear();
  for (const auto& state : t_.states) {
    const Block* block = std::exchange(state->counted, nullptr);
    while (block != nullptr) {
      const std::uint64_t executions = std::exchange(block->executions, 0);
      if (executions != 0) cpu_.audience.counted(*block->code, executions);
      block = block->next_counted;
    }
  }
}

/// A block that was left before its end is reported as the part that ran, and so is a cut block,
/// which does not count itself.
void BlockReporter::uncount_rest() {
  const State& s = *t_.in_use;
  const Block& block = *s.block;
  const std::uint32_t done = s.done_of_last();
  if (!store_.is_cut(block)) {
    if (s.exit == Exit::branch || s.exit == Exit::tail) return;
    overcounted_.push_back(&block);
  }
  if (done != 0) cpu_.audience.counted(block.code->first(done), 1);
}

/// Some observers received the batch. Others want counts of it, or its trail.
void BlockReporter::note_batch(std::uint32_t of_last, std::uint64_t first) {
  const JointInterest& now = cpu_.audience.interest();
  if (!now.passes()) return;
  State& s = *t_.in_use;
  if (now.counts()) {
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
  trail_.pass(first, t_.position());
}

/// As many as the trail has to have.
void BlockReporter::keep_trail() {
  const State& s = *t_.in_use;
  const auto at = [&](std::uint64_t i) -> const TrailedBlock& {
    return s.trail[i % State::kTrail];
  };
  const std::uint32_t of_last = s.done_of_last();
  const std::uint32_t wanted = cpu_.audience.interest().trail;
  const std::uint64_t oldest = s.trailed - std::min<std::uint64_t>(s.trailed, State::kTrail);
  std::uint64_t from = s.trailed - 1;
  std::uint32_t instructions = of_last;
  while (from != oldest && instructions < wanted) instructions += at(--from).block->count;
  // The position is after all of the last block.
  std::uint64_t first = t_.position() - (s.block->count - of_last) - instructions;
  for (; from != s.trailed; ++from) {
    const TrailedBlock& b = at(from);
    const std::uint32_t count = from + 1 == s.trailed ? of_last : b.block->count;
    keep_in_trail(*b.block, count, first, b.area);
    first += count;
  }
}

/// The same for the batch.
void BlockReporter::keep_trail_of_batch() {
  const State& s = *t_.in_use;
  const std::uint32_t of_last = s.done_of_last();
  const std::uint32_t wanted = cpu_.audience.interest().trail;
  const std::uint32_t all = s.batch[s.batched - 1].first + of_last;
  std::uint32_t from = s.batched - 1;
  while (from != 0 && all - s.batch[from].first < wanted) --from;
  for (std::uint32_t i = from; i < s.batched; ++i) {
    const BatchedBlock& b = s.batch[i];
    const std::uint32_t count = i + 1 == s.batched ? of_last : b.block->count;
    keep_in_trail(*b.block, count, runner_.batch_first() + b.first, b.area);
  }
}

void BlockReporter::keep_in_trail(const Block& block, std::uint32_t count, std::uint64_t first,
                                  const std::uint8_t* area) {
  trail_.keep(*block.code, store_.is_cut(block), count, first, area, block.areas[count]);
}

}  // namespace citcat::fast
