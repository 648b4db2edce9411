#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "events/machine/address.h"
#include "formats/memory/zeroed_array.h"

namespace citcat {

/// The places of code pages that the engine was last given. The engine still uses these places,
/// unless it has dropped them and will ask again.
class EngineCode {
 public:
  /// Notes that the engine got `frame` for code of the page.
  void note(LinearAddr page, PhysAddr frame) {
    (is_low(page) ? told_[page.page()] : told_above_[page.page()]) = frame.page() + 1;
  }
  /// The engine has dropped the page, and will ask where it needs it again.
  void forget(LinearAddr page) {
    if (is_low(page)) {
      told_[page.page()] = 0;
    } else {
      told_above_.erase(page.page());
    }
  }
  /// The only frame that the engine may have for the page; nullopt if it got none.
  std::optional<PhysAddr> frame_of(LinearAddr page) const {
    const FrameNumber told = is_low(page) ? told_[page.page()] : found_above(page);
    if (told == 0) return std::nullopt;
    return PhysAddr{(told - 1) * kPageSize};
  }

 private:
  static constexpr std::size_t kLowPages = std::size_t{1} << 20;
  static bool is_low(LinearAddr page) { return page.page() < kLowPages; }
  FrameNumber found_above(LinearAddr page) const {
    const auto found = told_above_.find(page.page());
    return found == told_above_.end() ? 0 : found->second;
  }

  /// By page, the number of its frame and 1: what is never told takes no memory.
  ZeroedArray<FrameNumber> told_{kLowPages};
  std::unordered_map<LinearAddr::PageNumber, FrameNumber> told_above_;  ///< beyond 4 GiB
};

}  // namespace citcat
