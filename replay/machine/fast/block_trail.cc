#include "replay/machine/fast/block_trail.h"

#include <algorithm>
#include <utility>

namespace citcat::fast {

void BlockTrail::pass(std::uint64_t from, std::uint64_t to) {
  if (from == to) return;
  if (from_ == kNothing) from_ = from;
  to_ = to;
}

void BlockTrail::keep(const BlockCode& code, bool once, std::uint32_t count, std::uint64_t first,
                      const std::uint8_t* area, std::size_t area_bytes) {
  if (count == 0) return;
  Kept& kept = kept_[next_++ % kept_.size()];
  kept.code = &code;
  kept.once = once;
  if (once) kept.copy = code;
  kept.count = count;
  kept.first = first;
  kept.area.assign(area, area + area_bytes);
}

void BlockTrail::tell_all(Audience& audience) {
  const std::uint64_t from = std::exchange(from_, kNothing);
  std::uint64_t trail = to_;
  std::size_t begin = next_;
  const std::size_t oldest = next_ - std::min(next_, kept_.size());
  while (begin != oldest && to_ - trail < audience.interest().trail) {
    const Kept& before = kept_[(begin - 1) % kept_.size()];
    if (before.first < from || before.first + before.count != trail) break;
    trail = before.first;
    --begin;
  }
  audience.passed(from, to_, trail);
  for (; begin != next_; ++begin) {
    const Kept& kept = kept_[begin % kept_.size()];
    const BlockCode& code = kept.once ? kept.copy : *kept.code;
    const auto* const addresses = reinterpret_cast<const LinearAddr*>(kept.area.data());
    const Position first{kept.first, 0};
    if (kept.count == code.count()) {
      audience.trailed({code, addresses}, first);
    } else {
      const BlockCode part = code.first(kept.count);
      audience.trailed({part, addresses}, first);
    }
  }
  next_ = 0;
}

}  // namespace citcat::fast
