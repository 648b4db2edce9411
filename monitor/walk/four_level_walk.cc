// Page walks of long mode: four levels of tables with entries of 8 bytes, pages of 4 KiB, 2 MiB and
// 1 GiB (Intel SDM vol. 3, 4.5). The no-execute bit does not concern a monitor: the emulator has
// checked it.

#include "monitor/walk/page_walker.h"

namespace citcat::monitor {
namespace {

constexpr unsigned kLevels = 4, kIndexBits = 9, kPageBits = 12;
constexpr std::uint32_t kIndexMask = (1u << kIndexBits) - 1;

/// The bit where the index of a level begins, the top one being level 0.
unsigned shift_of(unsigned level) { return kPageBits + kIndexBits * (kLevels - 1 - level); }

PhysicalAddress entry_address(PhysicalAddress table, std::uint64_t linear, unsigned level) {
  return table - table % 0x1000 +
         8 * (static_cast<std::uint32_t>(linear >> shift_of(level)) & kIndexMask);
}

/// At the second and the third level a page may be in a table's place.
bool may_be_large(unsigned level) { return level == 1 || level == 2; }

/// The bits of an address within a page that an entry of this level maps.
std::uint32_t within_page(unsigned level) {
  return static_cast<std::uint32_t>((std::uint64_t{1} << shift_of(level)) - 1);
}

}  // namespace

/// A present entry. It is written as a whole where it is marked, as on the buses of machines that
/// were recorded.
std::optional<std::uint64_t> PageWalker::read_long_entry(PhysicalAddress address,
                                                         std::uint32_t sets, Names names) {
  const auto entry = read_entry_of(address & a20_mask_, 8, sets, names);
  return entry && (*entry & kPresent) != 0 ? entry : std::nullopt;
}

std::optional<PageWalker::Entry> PageWalker::walk_four_levels(std::uint64_t linear,
                                                              std::uint32_t sets) {
  PhysicalAddress table = directory_base();
  for (unsigned level = 0;; ++level) {
    const PhysicalAddress at = entry_address(table, linear, level);
    const bool last = level == kLevels - 1 || (may_be_large(level) && (peek(at) & kLarge) != 0);
    const auto read = read_long_entry(at, last ? sets : 0, last ? Names::page : Names::table);
    if (!read) return std::nullopt;
    const std::uint64_t within = last ? within_page(level) : 0;
    const PhysicalAddress named = named_by((*read & ~within) | (linear & within));
    if (last)
      return entry(linear >> kPageBits, named, static_cast<std::uint32_t>(*read), at,
                   level != kLevels - 1);
    table = named;
  }
}

PageWalker::Path PageWalker::four_level_path(std::uint64_t linear) const {
  Path path;
  PhysicalAddress table = directory_base();
  for (unsigned level = 0; level < kLevels; ++level) {
    path.at[level] = entry_address(table, linear, level);
    path.count = level + 1;
    path.within = within_page(level);
    const std::uint64_t named = peek_wide(path.at[level]);
    if ((named & kPresent) == 0 || (may_be_large(level) && (named & kLarge) != 0)) break;
    table = named_by(named);
  }
  return path;
}

}  // namespace citcat::monitor
