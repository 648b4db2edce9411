// Page walks of long mode: four levels of tables with entries of 8 bytes, pages of 4 KiB, 2 MiB and
// 1 GiB (Intel SDM vol. 3, 4.5). Whatever else an entry's upper half may say, no-execute does not
// concern a monitor: the emulator has looked.

#include "monitor/page_walker.h"

namespace citcat::monitor {
namespace {

constexpr unsigned kLevels = 4, kIndexBits = 9, kPageBits = 12;
constexpr std::uint32_t kIndexMask = (1u << kIndexBits) - 1;
constexpr std::uint32_t kAddressAbove = 0xfffff;  // of an entry's upper half: bits 32 to 51

/// The bit where the index of a level begins, the top one being level 0.
unsigned shift_of(unsigned level) { return kPageBits + kIndexBits * (kLevels - 1 - level); }

std::uint32_t entry_address(std::uint32_t table, std::uint64_t linear, unsigned level) {
  return (table & ~0xfffu) +
         8 * (static_cast<std::uint32_t>(linear >> shift_of(level)) & kIndexMask);
}

/// At the second and the third level a page may stand in a table's place.
bool may_be_large(unsigned level) { return level == 1 || level == 2; }

/// The bits of an address within a page that an entry of this level maps.
std::uint32_t within_page(unsigned level) {
  return static_cast<std::uint32_t>((std::uint64_t{1} << shift_of(level)) - 1);
}

}  // namespace

/// The lower half of a present entry. It is written as a whole where it is marked, as on the buses
/// of machines that were recorded.
std::optional<std::uint32_t> PageWalker::read_long_entry(std::uint32_t address,
                                                         std::uint32_t sets) {
  const auto entry = read_entry_of(address & a20_mask_, 8, sets);
  if (!entry || (*entry & kPresent) == 0) return std::nullopt;
  if ((*entry >> 32 & kAddressAbove) != 0) {
    met_high_entry_ = true;
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(*entry);
}

std::optional<PageWalker::Entry> PageWalker::walk_four_levels(std::uint64_t linear,
                                                              std::uint32_t sets) {
  std::uint32_t table = directory_base();
  for (unsigned level = 0;; ++level) {
    const std::uint32_t at = entry_address(table, linear, level);
    const bool last = level == kLevels - 1 || (may_be_large(level) && (peek(at) & kLarge) != 0);
    const auto read = read_long_entry(at, last ? sets : 0);
    if (!read) return std::nullopt;
    if (!last) {
      table = *read;
      continue;
    }
    const std::uint32_t within = within_page(level);
    const std::uint32_t frame = (*read & ~within) | (static_cast<std::uint32_t>(linear) & within);
    return entry(linear >> kPageBits, frame & ~0xfffu, *read, at);
  }
}

PageWalker::Path PageWalker::four_level_path(std::uint64_t linear) const {
  Path path;
  std::uint32_t table = directory_base();
  for (unsigned level = 0; level < kLevels; ++level) {
    path.at[level] = entry_address(table, linear, level);
    path.count = level + 1;
    path.within = within_page(level);
    table = peek(path.at[level]);
    if (may_be_large(level) && (table & kLarge) != 0) break;
  }
  return path;
}

}  // namespace citcat::monitor
