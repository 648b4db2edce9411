#pragma once
// Addresses are types, so that the compiler finds the classic mistake of this field: mixing what
// the bus shows (physical), what the program meant (linear) and what it wrote (segment:offset).

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace citcat {

/// Bytes in a page frame of the x86 paging unit (Intel SDM vol. 3, 4.3).
inline constexpr std::uint32_t kPageSize = 4096;
inline constexpr std::uint32_t kPageMask = kPageSize - 1;

/// Physical byte address, after the A20 gate; what the processor's pins carry. 32-bit machines:
/// PAE addresses beyond 4 GiB are not supported and are refused where they would arise.
struct PhysAddr {
  std::uint32_t value = 0;
  constexpr auto operator<=>(const PhysAddr&) const = default;
  constexpr std::uint32_t page() const { return value / kPageSize; }
  constexpr std::uint32_t offset_in_page() const { return value & kPageMask; }
  constexpr PhysAddr operator+(std::uint32_t n) const { return PhysAddr{value + n}; }
};

/// Whether ranges of `size` and `other` bytes have a byte in common. They may go past the last
/// address, to the first.
constexpr bool overlap(PhysAddr a, std::uint32_t size, PhysAddr b, std::uint32_t other) {
  return a.value - b.value < other || b.value - a.value < size;
}

/// Linear address: after segmentation, before paging.
struct LinearAddr {
  std::uint32_t value = 0;
  constexpr auto operator<=>(const LinearAddr&) const = default;
  constexpr std::uint32_t page() const { return value / kPageSize; }
  constexpr std::uint32_t offset_in_page() const { return value & kPageMask; }
  constexpr LinearAddr operator+(std::uint32_t n) const { return LinearAddr{value + n}; }
};

/// Selector and offset, as a program names memory.
struct SegOff {
  std::uint16_t selector = 0;
  std::uint32_t offset = 0;
  constexpr auto operator<=>(const SegOff&) const = default;
};

}  // namespace citcat

template <>
struct std::hash<citcat::PhysAddr> {
  std::size_t operator()(citcat::PhysAddr a) const noexcept { return a.value; }
};
template <>
struct std::hash<citcat::LinearAddr> {
  std::size_t operator()(citcat::LinearAddr a) const noexcept { return a.value; }
};
