#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "events/address.h"

namespace citcat {

/// Where the engine was told last that pages of code lie: what it still believes, unless it forgot
/// and will ask.
class EngineCode {
 public:
  /// The engine is told that code of the page lies in `frame`.
  void note(LinearAddr page, PhysAddr frame) { slot(page) = {page.page(), frame.page()}; }
  /// The only frame that the engine may have for the page; nullopt where that is not known any
  /// more.
  std::optional<PhysAddr> frame_of(LinearAddr page) const {
    const Told& told = told_[page.page() & (kSlots - 1)];
    if (told.page != page.page()) return std::nullopt;
    return PhysAddr{told.frame * kPageSize};
  }

 private:
  static constexpr std::size_t kSlots = 4096;
  struct Told {
    std::uint32_t page = ~std::uint32_t{0};
    std::uint32_t frame = 0;
  };
  Told& slot(LinearAddr page) { return told_[page.page() & (kSlots - 1)]; }
  std::vector<Told> told_ = std::vector<Told>(kSlots);
};

}  // namespace citcat
