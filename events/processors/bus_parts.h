#pragma once
// Parts of memory about which a pass over a bus keeps data.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "events/machine/address.h"

namespace citcat {

/// Bytes of one part. A run touches little of most pages, and what is kept of each byte is several.
inline constexpr std::uint32_t kBusPart = 512;

inline std::uint64_t bus_part(PhysAddr address) { return address.value / kBusPart; }

/// Calls `fn` with each part that bytes lie in: its number, where in it they begin, where among the
/// bytes, and how many there are.
template <typename Fn>
void for_bus_parts(PhysAddr address, std::size_t size, Fn fn) {
  for (std::size_t i = 0; i < size;) {
    const PhysAddr here = address.plus32(static_cast<std::uint32_t>(i));
    const std::uint32_t at = here.offset_in(kBusPart);
    const std::size_t n = std::min<std::size_t>(size - i, kBusPart - at);
    fn(bus_part(here), at, i, n);
    i += n;
  }
}

/// By their numbers. Transactions that follow each other are mostly of few parts: the last one is
/// found at once.
template <typename Part>
class BusParts {
 public:
  /// Null where it has not been made.
  Part* find(std::uint64_t number) const {
    if (number == number_ && part_ != nullptr) return part_;
    const auto its = parts_.find(number);
    if (its == parts_.end()) return nullptr;
    number_ = number;
    return part_ = its->second.get();
  }

  /// `fill` is called with one that has been made.
  template <typename Fill>
  Part& find_or_make(std::uint64_t number, Fill fill) {
    if (Part* const its = find(number)) return *its;
    std::unique_ptr<Part>& its = parts_[number];
    its = std::make_unique<Part>();
    fill(*its);
    number_ = number;
    return *(part_ = its.get());
  }
  Part& find_or_make(std::uint64_t number) {
    return find_or_make(number, [](Part&) {});
  }

  /// Calls `fn` with the number of each part, and the part, in no order.
  template <typename Fn>
  void for_each(Fn fn) {
    for (auto& [number, part] : parts_) fn(number, *part);
  }

 private:
  std::unordered_map<std::uint64_t, std::unique_ptr<Part>> parts_;
  mutable std::uint64_t number_ = 0;
  mutable Part* part_ = nullptr;  ///< the one found last
};

}  // namespace citcat
