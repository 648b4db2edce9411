#include "replay/infer/page_map.h"

#include <algorithm>
#include <iterator>

namespace citcat {
namespace {

// Bits of entries (Intel SDM vol. 3, tables 4-4 to 4-6). With PSE-36 bits 13 to 20 of a large
// page's entry are address bits beyond 4 GiB, which are not followed.
constexpr std::uint32_t kPresent = 1, kLarge = 0x80, kLargeFrame = 0xffc00000;
constexpr std::uint32_t kLargeBytes = 1u << 22, kEntries = 1024;

}  // namespace

PageMap::PageMap(std::uint32_t cr3, const ReadDword& read) {
  for (std::uint32_t i = 0; i < kEntries; ++i) {
    const auto directory = read(PhysAddr{(cr3 & ~kPageMask) + 4 * i});
    if (!directory || (*directory & kPresent) == 0) continue;
    const std::uint32_t base = i * kLargeBytes;
    if ((*directory & kLarge) != 0) {
      large_[base] = {PhysAddr{*directory & kLargeFrame}, kLargeBytes};
      continue;
    }
    for (std::uint32_t j = 0; j < kEntries; ++j) {
      const auto entry = read(PhysAddr{(*directory & ~kPageMask) + 4 * j});
      if (!entry || (*entry & kPresent) == 0) continue;
      add_page(LinearAddr{base + j * kPageSize}, *entry / kPageSize);
    }
  }
}

void PageMap::add_page(LinearAddr page, std::uint32_t frame) {
  frame_of_[page.page()] = frame;
  pages_of_.emplace(frame, page.page());
}

PageMap PageMap::of_four_levels(std::uint32_t cr3, const ReadDword& read) {
  PageMap map;
  map.paging_ = true;
  map.read_level(4, PhysAddr{cr3}, {}, read);
  return map;
}

/// The table of this level (1: page table) that maps what lies from `begin` on. Frames beyond
/// 4 GiB are of no machine that is replayed.
void PageMap::read_level(unsigned level, PhysAddr table, LinearAddr begin, const ReadDword& read) {
  constexpr std::uint32_t kWideEntries = 512, kHighFrame = 0xfffff;
  const unsigned shift = 12 + 9 * (level - 1);
  for (std::uint32_t i = 0; i < kWideEntries; ++i) {
    const PhysAddr at = table.page_begin().plus32(8 * i);
    const auto low = read(at), high = read(at.plus32(4));
    if (!low || !high || (*low & kPresent) == 0 || (*high & kHighFrame) != 0) continue;
    LinearAddr here{begin.value + (std::uint64_t{i} << shift)};
    // What bit 47 is, those above it are.
    if (level == 4 && i >= kWideEntries / 2) here.value |= ~std::uint64_t{0} << 48;
    if (level == 1) {
      add_page(here, *low / kPageSize);
    } else if (level < 4 && (*low & kLarge) != 0) {
      const std::uint32_t bytes = 1u << shift;
      large_[here.value] = {PhysAddr{*low}.begin_of(bytes), bytes};
    } else {
      read_level(level - 1, PhysAddr{*low}, here, read);
    }
  }
}

std::optional<PhysAddr> PageMap::translate(std::uint32_t cr3, LinearAddr address,
                                           const ReadDword& read) {
  const auto directory = read(PhysAddr{(cr3 & ~kPageMask) + (address.low32() >> 20 & 0xffc)});
  if (!directory || (*directory & kPresent) == 0) return std::nullopt;
  if ((*directory & kLarge) != 0) {
    return PhysAddr{(*directory & kLargeFrame) | (address.low32() & ~kLargeFrame)};
  }
  const auto entry = read(PhysAddr{(*directory & ~kPageMask) + (address.low32() >> 10 & 0xffc)});
  if (!entry || (*entry & kPresent) == 0) return std::nullopt;
  return PhysAddr{(*entry & ~kPageMask) | address.offset_in_page()};
}

std::optional<PhysAddr> PageMap::translate(LinearAddr address) const {
  if (!paging_) return PhysAddr{address.low32()};
  if (const auto page = frame_of_.find(address.page()); page != frame_of_.end()) {
    return PhysAddr{page->second * kPageSize + address.offset_in_page()};
  }
  const auto behind = large_.upper_bound(address.value);
  if (behind == large_.begin()) return std::nullopt;
  const auto& [begin, large] = *std::prev(behind);
  if (address.value - begin >= large.bytes) return std::nullopt;
  return PhysAddr{large.physical.value + (address.value - begin)};
}

std::vector<LinearAddr> PageMap::linear_of(PhysAddr address) const {
  if (!paging_) return {LinearAddr{address.value}};
  std::vector<LinearAddr> found;
  const auto [begin, end] = pages_of_.equal_range(address.page());
  for (auto it = begin; it != end; ++it) {
    found.push_back(LinearAddr{it->second * kPageSize + address.offset_in_page()});
  }
  for (const auto& [linear, large] : large_) {
    if (address.begin_of(large.bytes) == large.physical) {
      found.push_back(LinearAddr{linear + address.offset_in(large.bytes)});
    }
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  return found;
}

}  // namespace citcat
