#include "replay/machine/fast/block_runner.h"

#include <cstring>
#include <span>

namespace citcat::fast {

BlockRunner::BlockRunner(TierState& state, BlockStore& store)
    : t_(state), store_(store), area_(kAreaBytes + kAreaBeyond), wide_area_(area_.size()) {}

void BlockRunner::run(const Block& block, std::uint8_t* area) {
  State& s = *t_.in_use;
  s.block = &block;
  s.left -= block.count;
  s.set_interrupts = false;
  if (block.image != nullptr) std::memcpy(area, block.image, block.area_bytes);
  block.ops[0].handler(block.ops, &s, area, s.flags.z, s.flags.s, s.flags.c);
}

void BlockRunner::run_batch(const Block& block, std::uint32_t may_run, std::uint32_t due) {
  State& s = *t_.in_use;
  batch_first_ = t_.position();
  const ShorterRun shorter(t_, may_run);
  s.batch_end = std::int64_t{may_run} - due;
  s.logged = 0;
  s.shift_count = 0;
  s.batch[0] = {&block, 0, 0, area()};
  s.batched = 1;
  s.batch_limit = State::kMaxBatched;
  run(block, area());
  s.batch_limit = 1;
}

std::uint32_t BlockRunner::settle() {
  State& s = *t_.in_use;
  const Block& block = *s.block;
  switch (s.exit) {
    case Exit::branch:
      t_.eip = s.next;
      return block.count;
    case Exit::tail:
      t_.eip = block.eip_of(block.count);
      return block.count;
    case Exit::careful:
    case Exit::patched:
      break;
  }
  const std::uint32_t done = block.number_of(s.at);
  s.left += block.count - done;
  t_.eip = block.eip_of(done);
  return done;
}

bool BlockRunner::is_noted(const Block& block) const {
  return t_.in_use->exit == Exit::branch && !block.counts_shifts;
}

void BlockRunner::note_flags(const Block& block, std::uint32_t count) {
  State& s = *t_.in_use;
  if (count == block.count && !block.counts_shifts) {
    s.untold = s.untold + block.flags;
    return;
  }
  const std::span<const std::uint8_t> counts(s.shift_counts.data(), s.shift_count);
  s.untold = s.untold + store_.flags_of(block, count, counts);
  s.shift_count = 0;
}

}  // namespace citcat::fast
