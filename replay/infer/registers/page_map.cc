#include "replay/infer/registers/page_map.h"

#include <algorithm>
#include <iterator>

namespace citcat {

PageMap::PageMap(const PageTables& tables, AddressSpaceId cr3, const ReadDword& read) {
  read_level(tables, tables.levels, PhysAddr{cr3}, {}, read);
}

void PageMap::add_page(LinearAddr page, FrameNumber frame) {
  frame_of_[page.page()] = frame;
  pages_of_.emplace(frame, page.page());
}

std::optional<PageEntry> PageMap::entry(const PageTables& tables, PhysAddr at,
                                        const ReadDword& read) {
  const auto low = read(at);
  if (!low || tables.entry_bytes == 4) return low ? std::optional(PageEntry{*low}) : std::nullopt;
  const auto high = read(at.plus32(4));
  if (!high) return std::nullopt;
  return PageEntry{std::uint64_t{*high} << 32 | *low};
}

/// The table of this level that maps what lies from `begin` on. With PSE-36 bits 13 to 20 of a
/// large page's entry are address bits beyond 4 GiB, which are not followed.
void PageMap::read_level(const PageTables& tables, unsigned level, PhysAddr table, LinearAddr begin,
                         const ReadDword& read) {
  const std::uint32_t entries = 1u << tables.index_bits;
  for (std::uint32_t i = 0; i < entries; ++i) {
    LinearAddr here{begin.value + (std::uint64_t{i} << tables.shift(level))};
    const auto e = entry(tables, tables.entry_at(level, table, here), read);
    if (!e || !e->is_present()) continue;
    // What bit 47 is, those above it are.
    if (level == 4 && i >= entries / 2) here.value |= ~std::uint64_t{0} << 48;
    if (level != 1 && tables.may_be_large(level) && e->is_large()) {
      const std::uint32_t bytes = 1u << tables.shift(level);
      large_[here.value] = {e->address().begin_of(bytes), bytes};
    } else if (level == 1) {
      add_page(here, e->address().page());
    } else {
      read_level(tables, level - 1, e->address(), here, read);
    }
  }
}

std::optional<PhysAddr> PageMap::translate(const PageTables& tables, AddressSpaceId cr3,
                                           LinearAddr address, const ReadDword& read) {
  PhysAddr table{cr3};
  for (unsigned level = tables.levels;; --level) {
    const auto e = entry(tables, tables.entry_at(level, table, address), read);
    if (!e || !e->is_present()) return std::nullopt;
    if (tables.may_be_large(level) && e->is_large()) {
      const std::uint32_t bytes = 1u << tables.shift(level);
      return PhysAddr{e->address().begin_of(bytes).value + address.offset_in(bytes)};
    }
    table = e->address();
    if (level == 1) return table.plus32(address.offset_in_page());
  }
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
