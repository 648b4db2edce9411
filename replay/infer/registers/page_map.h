#pragma once
// Page tables read both ways: where a linear page lies, and which linear pages lie in a frame. A
// bus shows physical addresses, registers hold linear ones.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "events/machine/address.h"
#include "events/machine/address_space.h"
#include "events/recording.h"

namespace citcat {

/// An entry of any level (SDM vol. 3, tables 4-4 to 4-6 and 4-14 to 4-19).
struct PageEntry {
  std::uint64_t value = 0;

  bool is_present() const { return (value & 1) != 0; }
  bool is_large() const { return (value & 0x80) != 0; }
  /// The address of the table or page that the entry names.
  PhysAddr address() const { return PhysAddr{value & 0x000ffffffffff000}; }
};

/// How page tables are laid out. Level 1 is that of the page tables, the highest is where CR3
/// points.
struct PageTables {
  unsigned levels = 2, entry_bytes = 4, index_bits = 10;

  unsigned shift(unsigned level) const { return 12 + index_bits * (level - 1); }
  std::uint32_t index(unsigned level, LinearAddr a) const {
    return static_cast<std::uint32_t>(a.value >> shift(level)) & ((1u << index_bits) - 1);
  }
  /// Where the table that begins with the frame of `table` has the entry for `a`.
  PhysAddr entry_at(unsigned level, PhysAddr table, LinearAddr a) const {
    return table.page_begin().plus32(index(level, a) * entry_bytes);
  }
  /// An entry of this level may map a page; of bit 7 of others processors take other notice.
  bool may_be_large(unsigned level) const { return level > 1 && level < 4; }
};
/// Without PAE, and of long mode (Intel SDM vol. 3, 4.3 and 4.5).
inline constexpr PageTables kTwoLevels{2, 4, 10}, kFourLevels{4, 8, 9};

/// The page tables of one moment, as far as they are known.
class PageMap {
 public:
  /// The dword at a physical address, where it is known.
  using ReadDword = std::function<std::optional<std::uint32_t>(PhysAddr)>;
  /// Reads all tables under the one at `cr3`.
  PageMap(const PageTables& tables, AddressSpaceId cr3, const ReadDword& read);
  /// Without paging: linear addresses are physical.
  PageMap() : paging_(false) {}

  /// The entry at `at`, where all of it is known.
  static std::optional<PageEntry> entry(const PageTables& tables, PhysAddr at,
                                        const ReadDword& read);
  /// Where one address lies, read afresh; nullopt where nothing is mapped or an entry is not known.
  static std::optional<PhysAddr> translate(const PageTables& tables, AddressSpaceId cr3,
                                           LinearAddr address, const ReadDword& read);
  std::optional<PhysAddr> translate(LinearAddr address) const;
  /// Every known linear address of a physical one, highest first.
  std::vector<LinearAddr> linear_of(PhysAddr address) const;

 private:
  struct LargePage {
    PhysAddr physical;
    std::uint32_t bytes = 0;
  };
  void read_level(const PageTables& tables, unsigned level, PhysAddr table, LinearAddr begin,
                  const ReadDword& read);
  void add_page(LinearAddr page, FrameNumber frame);

  bool paging_ = true;
  std::map<std::uint64_t, FrameNumber> frame_of_;       ///< by linear page, of 4 KiB pages
  std::multimap<FrameNumber, std::uint64_t> pages_of_;  ///< the reverse
  std::map<std::uint64_t, LargePage> large_;            ///< by linear address
};

}  // namespace citcat
