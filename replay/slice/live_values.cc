#include "replay/slice/live_values.h"

#include <algorithm>

namespace citcat {

bool LiveValues::any_of(PhysAddr a, std::uint32_t size) const {
  if (pages_.empty() || !may_hold(a.page())) return false;
  const auto found = pages_.find(a.page());
  if (found == pages_.end()) return false;
  const auto begin = found->second->ways.begin() + a.offset_in_page();
  const auto room = static_cast<std::ptrdiff_t>(std::min(size, kPageSize - a.offset_in_page()));
  return std::any_of(begin, begin + room, [](std::uint8_t way) { return way != 0; });
}

void LiveValues::want_place(unsigned number, SliceWay way) {
  const auto w = static_cast<std::uint8_t>(way);
  std::uint8_t& have = places_[number];
  have = have == 0 ? w : std::min(have, w);
  set_.set(number);
}

void LiveValues::want_memory(PhysAddr a, SliceWay way) {
  const auto w = static_cast<std::uint8_t>(way);
  std::unique_ptr<Page>& page = pages_[a.page()];
  if (page == nullptr) page = std::make_unique<Page>();
  filter_[a.page() / 64 % filter_.size()] |= std::uint64_t{1} << a.page() % 64;
  std::uint8_t& have = page->ways[a.offset_in_page()];
  if (have == 0) ++page->count;
  have = have == 0 ? w : std::min(have, w);
}

void LiveValues::forget_memory(PhysAddr a) {
  const auto page = pages_.find(a.page());
  if (page == pages_.end()) return;
  std::uint8_t& have = page->second->ways[a.offset_in_page()];
  if (have != 0) --page->second->count;
  have = 0;
  if (page->second->count == 0) pages_.erase(page);
}

void LiveValues::rotate_stack(int by) {
  if (by == 0 || !wants_stack()) return;
  constexpr unsigned kBytes = 8 * place::kStackBytes;
  std::array<std::uint8_t, kBytes> before{};
  for (unsigned i = 0; i < kBytes; ++i) {
    const unsigned to =
        (i + kBytes - static_cast<unsigned>((by + 8) % 8) * place::kStackBytes) % kBytes;
    before[to] = places_[place::kStack + i];
  }
  for (unsigned i = 0; i < kBytes; ++i) {
    places_[place::kStack + i] = before[i];
    set_.set(place::kStack + i, before[i] != 0);
  }
}

bool LiveValues::wants_stack() const {
  static const PlaceSet stack = [] {
    PlaceSet all;
    for (unsigned i = 0; i < 8 * place::kStackBytes; ++i) all.set(place::kStack + i);
    return all;
  }();
  return (set_ & stack).any();
}

void LiveValues::spread_over_stack() {
  std::uint8_t nearest = 0;
  for (unsigned i = 0; i < 8 * place::kStackBytes; ++i) {
    const std::uint8_t way = places_[place::kStack + i];
    if (way != 0 && (nearest == 0 || way < nearest)) nearest = way;
  }
  if (nearest == 0) return;
  for (unsigned i = 0; i < 8 * place::kStackBytes; ++i) {
    want_place(place::kStack + i, static_cast<SliceWay>(nearest));
  }
}

}  // namespace citcat
