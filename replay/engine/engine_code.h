#pragma once

#include <cstdint>
#include <optional>

#include "events/address.h"
#include "formats/memory/zeroed_array.h"

namespace citcat {

/// Where the engine was told last that pages of code lie: what it still believes, unless it forgot
/// and will ask.
class EngineCode {
 public:
  /// The engine is told that code of the page lies in `frame`.
  void note(LinearAddr page, PhysAddr frame) { told_[page.page()] = frame.page() + 1; }
  /// The engine has dropped the page, and will ask where it needs it again.
  void forget(LinearAddr page) { told_[page.page()] = 0; }
  /// The only frame that the engine may have for the page; nullopt where it was told none.
  std::optional<PhysAddr> frame_of(LinearAddr page) const {
    const std::uint32_t told = told_[page.page()];
    if (told == 0) return std::nullopt;
    return PhysAddr{(told - 1) * kPageSize};
  }

 private:
  /// By page, the number of its frame and 1: what is never told takes no memory.
  ZeroedArray<std::uint32_t> told_{std::size_t{1} << 20};
};

}  // namespace citcat
