#pragma once
// Page tables read both ways: where a linear page lies, and which linear pages lie in a frame. A
// bus shows physical addresses; what registers hold are linear ones.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "events/address.h"

namespace citcat {

/// The page tables of one moment, of two levels or of long mode's four (Intel SDM vol. 3, 4.3 and
/// 4.5), as far as they are known.
class PageMap {
 public:
  /// The dword at a physical address, where it is known.
  using ReadDword = std::function<std::optional<std::uint32_t>(PhysAddr)>;
  /// Reads all tables under the directory at `cr3`.
  PageMap(std::uint32_t cr3, const ReadDword& read);
  /// The same of long mode.
  static PageMap of_four_levels(std::uint32_t cr3, const ReadDword& read);
  /// Without paging: linear addresses are physical.
  PageMap() : paging_(false) {}

  /// Where one address lies, read afresh; nullopt where nothing is mapped or an entry is not known.
  static std::optional<PhysAddr> translate(std::uint32_t cr3, LinearAddr address,
                                           const ReadDword& read);
  std::optional<PhysAddr> translate(LinearAddr address) const;
  /// Every known linear address of a physical one, highest first.
  std::vector<LinearAddr> linear_of(PhysAddr address) const;

 private:
  struct LargePage {
    PhysAddr physical;
    std::uint32_t bytes = 0;
  };
  void read_level(unsigned level, PhysAddr table, LinearAddr begin, const ReadDword& read);
  void add_page(LinearAddr page, std::uint32_t frame);

  bool paging_ = true;
  std::map<std::uint64_t, std::uint32_t> frame_of_;       ///< by linear page, of 4 KiB pages
  std::multimap<std::uint32_t, std::uint64_t> pages_of_;  ///< the reverse
  std::map<std::uint64_t, LargePage> large_;              ///< by linear address
};

}  // namespace citcat
