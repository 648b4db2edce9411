#include "replay/infer/page_map.h"

#include <algorithm>

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
      large_[base] = *directory & kLargeFrame;
      continue;
    }
    for (std::uint32_t j = 0; j < kEntries; ++j) {
      const auto entry = read(PhysAddr{(*directory & ~kPageMask) + 4 * j});
      if (!entry || (*entry & kPresent) == 0) continue;
      const std::uint32_t page = base / kPageSize + j, frame = *entry / kPageSize;
      frame_of_[page] = frame;
      pages_of_.emplace(frame, page);
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
  if (const auto page = frame_of_.find(address.low32() / kPageSize); page != frame_of_.end()) {
    return PhysAddr{page->second * kPageSize + address.offset_in_page()};
  }
  const auto large = large_.find(address.low32() & kLargeFrame);
  if (large == large_.end()) return std::nullopt;
  return PhysAddr{large->second | (address.low32() & ~kLargeFrame)};
}

std::vector<LinearAddr> PageMap::linear_of(PhysAddr address) const {
  if (!paging_) return {LinearAddr{address.value}};
  std::vector<LinearAddr> found;
  const auto [begin, end] = pages_of_.equal_range(address.page());
  for (auto it = begin; it != end; ++it) {
    found.push_back(LinearAddr{it->second * kPageSize + address.offset_in_page()});
  }
  for (const auto& [linear, physical] : large_) {
    if ((address.low32() & kLargeFrame) == physical) {
      found.push_back(LinearAddr{linear | (address.low32() & ~kLargeFrame)});
    }
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  return found;
}

}  // namespace citcat
