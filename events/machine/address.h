#pragma once
// Addresses are types, so that the compiler finds the classic mistake of this field: mixing
// addresses on the bus (physical) with those of the program (linear). A program's own operand is an
// offset in a segment; linear32() makes it an address.
//
// The names of arithmetic functions say how many bits they calculate with. plus32() and minus32()
// wrap from the last address of 32 bits to 0. There is no plain + or -, because it would hide the
// places that rely on that. Physical addresses beyond 4 GiB do not wrap: the distance is added to
// them, forwards or backwards.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "formats/io/error.h"

namespace citcat {

/// Bytes in a page frame of the x86 paging unit (Intel SDM vol. 3, 4.3).
inline constexpr std::uint32_t kPageSize = 4096;
inline constexpr std::uint32_t kPageMask = kPageSize - 1;
/// The most bits that a physical address has (SDM vol. 3, 4.1.4).
inline constexpr unsigned kAddressBits = 52;
/// Page frames that an address of so many bits can name.
inline constexpr std::uint64_t kFrameNumbers = (std::uint64_t{1} << kAddressBits) / kPageSize;

/// A byte's address in `Space`, which keeps addresses of different meaning apart.
template <class Space>
struct Address {
  using PageNumber = std::uint64_t;

  std::uint64_t value = 0;

  constexpr auto operator<=>(const Address&) const = default;

  constexpr PageNumber page() const { return value / kPageSize; }
  constexpr std::uint32_t offset_in_page() const { return offset_in(kPageSize); }
  constexpr Address page_begin() const { return begin_of(kPageSize); }
  // The same for any naturally aligned block of `bytes`, a power of two: a bus word, a line, ...
  constexpr std::uint32_t offset_in(std::uint32_t bytes) const { return low32() & (bytes - 1); }
  constexpr Address begin_of(std::uint32_t bytes) const { return {value - offset_in(bytes)}; }

  /// `bytes` further on; 0 follows the last address of 32 bits.
  constexpr Address plus32(std::uint32_t bytes) const {
    if (!is_beyond32(value)) [[likely]]
      return {low32() + bytes};
    return {value + static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(bytes)})};
  }
  /// The distance from `base` to this address in bytes, modulo 2^32. If physical addresses are
  /// further apart, a number greater than the length of any object.
  constexpr std::uint32_t minus32(Address base) const {
    constexpr std::uint64_t kFar = std::uint64_t{1} << 31;
    if (!is_beyond32(value | base.value)) [[likely]]
      return low32() - base.low32();
    const std::uint64_t distance = value - base.value;
    return static_cast<std::uint32_t>(distance + kFar < 2 * kFar ? distance : kFar);
  }
  /// True for one of the `size` bytes from `begin` on, which may wrap from the last address of 32
  /// bits to 0.
  constexpr bool is_within32(Address begin, std::size_t size) const {
    return minus32(begin) < size;
  }
  /// The part of the address that a bus carries with only the lower address lines in `lines`.
  constexpr Address masked32(std::uint32_t lines) const {
    return {value & (Space::kBeyond32 | lines)};
  }
  /// The address in a machine of 32 address bits, without a check.
  constexpr std::uint32_t low32() const { return static_cast<std::uint32_t>(value); }
  /// The address for a field of 32 bits. Throws InternalError if it has more bits.
  constexpr std::uint32_t u32() const {
    CITCAT_ASSERT(value <= 0xffffffff);
    return low32();
  }

 private:
  static constexpr bool is_beyond32(std::uint64_t value) { return (value & Space::kBeyond32) != 0; }
};

// kBeyond32: if one of these bits is set, arithmetic with 32 bits does not apply to the address.
struct PhysicalSpace {
  static constexpr std::uint64_t kBeyond32 = 0xffffffff00000000;
};
struct LinearSpace {
  static constexpr std::uint64_t kBeyond32 = 0;
};

/// Physical byte address after the A20 gate, as the processor's pins carry it.
using PhysAddr = Address<PhysicalSpace>;
/// The number of a page frame: an address divided by kPageSize.
using FrameNumber = PhysAddr::PageNumber;
/// Linear address: after segmentation, before paging.
using LinearAddr = Address<LinearSpace>;

/// Where `offset` lies in a segment at `base`, in a machine of 32 address bits.
constexpr LinearAddr linear32(std::uint32_t base, std::uint32_t offset) {
  return LinearAddr{base}.plus32(offset);
}

/// Whether ranges of `size` and `other` bytes have a byte in common. They may wrap from the last
/// address of 32 bits to 0.
template <class Space>
constexpr bool overlap(Address<Space> a, std::uint32_t size, Address<Space> b,
                       std::uint32_t other) {
  return a.is_within32(b, other) || b.is_within32(a, size);
}

}  // namespace citcat

template <class Space>
struct std::hash<citcat::Address<Space>> {
  std::size_t operator()(citcat::Address<Space> a) const noexcept { return a.value; }
};
