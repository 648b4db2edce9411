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

void LiveValues::want_place(unsigned number, SliceWay way, std::uint8_t bits) {
  const auto w = static_cast<std::uint8_t>(way);
  std::uint8_t& have = places_[number];
  have = have == 0 ? w : std::min(have, w);
  bits_[number] |= bits;
  set_.set(number);
}

void LiveValues::forget_place(unsigned number, std::uint8_t bits) {
  bits_[number] &= static_cast<std::uint8_t>(~bits);
  if (bits_[number] != 0) return;
  places_[number] = 0;
  set_.reset(number);
}

void LiveValues::want_memory(PhysAddr a, SliceWay way, std::uint8_t bits) {
  const auto w = static_cast<std::uint8_t>(way);
  std::unique_ptr<Page>& page = pages_[a.page()];
  if (page == nullptr) page = std::make_unique<Page>();
  filter_[a.page() / 64 % filter_.size()] |= std::uint64_t{1} << a.page() % 64;
  std::uint8_t& have = page->ways[a.offset_in_page()];
  if (have == 0) ++page->count;
  have = have == 0 ? w : std::min(have, w);
  page->bits[a.offset_in_page()] |= bits;
}

void LiveValues::forget_memory(PhysAddr a, std::uint8_t bits) {
  const auto page = pages_.find(a.page());
  if (page == pages_.end()) return;
  std::uint8_t& left = page->second->bits[a.offset_in_page()];
  left &= static_cast<std::uint8_t>(~bits);
  if (left != 0) return;
  std::uint8_t& have = page->second->ways[a.offset_in_page()];
  if (have != 0) --page->second->count;
  have = 0;
  if (page->second->count == 0) pages_.erase(page);
}

void LiveValues::rotate_stack(int by) {
  if (by == 0 || !wants_stack()) return;
  constexpr unsigned kBytes = 8 * place::kStackBytes;
  // ST(0) was ST(-by) before.
  const auto first = static_cast<unsigned>((by + 8) % 8) * place::kStackBytes;
  for (auto* const each : {&places_, &bits_}) {
    const auto begin = each->begin() + place::kStack;
    std::rotate(begin, begin + first, begin + kBytes);
  }
  for (unsigned i = 0; i < kBytes; ++i) {
    set_.set(place::kStack + i, places_[place::kStack + i] != 0);
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
