#pragma once
// Arithmetic with flags that are not computed before somebody asks (LazyFlags).

#include <cstdint>
#include <type_traits>

#include "replay/machine/fast/fast_state.h"

namespace citcat::fast {

template <class T>
using Signed = std::make_signed_t<T>;

template <class T>
inline constexpr std::uint8_t kBytes = sizeof(T);
template <class T>
inline constexpr unsigned kBits = 8 * sizeof(T);

/// Carries out of each bit of an operation on T, where LazyFlags wants them.
template <class T>
inline std::uint32_t place_carries(std::uint32_t carries) {
  if constexpr (sizeof(T) == 4) return carries;
  return carries << (32 - kBits<T>) | (carries & LazyFlags::kHalf);
}
template <class T>
inline std::uint32_t extend(std::uint32_t value) {
  return static_cast<std::uint32_t>(std::int32_t{static_cast<Signed<T>>(value)});
}
inline bool carry(std::uint32_t fc) { return (fc & LazyFlags::kCarry) != 0; }
inline std::uint32_t overflow_bit(std::uint32_t fc) { return (fc ^ fc << 1) & LazyFlags::kCarry; }
/// CF, OF (in bit 31 each), AF as LazyFlags::c.
inline std::uint32_t make_carries(std::uint32_t cf, std::uint32_t of, std::uint32_t half = 0) {
  return cf | (cf ^ of) >> 1 | half;
}
template <class T>
inline std::uint32_t top(std::uint32_t value) {  // its sign in bit 31
  return value << (32 - kBits<T>) & LazyFlags::kCarry;
}

enum Alu : unsigned { kAdd, kOr, kAdc, kSbb, kAnd, kSub, kXor, kCmp, kTest, kMov, kAluCount };

constexpr bool alu_reads(unsigned k) { return k != kMov; }
constexpr bool alu_writes(unsigned k) { return k != kCmp && k != kTest; }

template <unsigned K, class T>
inline std::uint32_t alu(std::uint32_t x, std::uint32_t y, std::uint32_t& fz, std::uint32_t& fs,
                         std::uint32_t& fc) {
  if constexpr (K == kMov) {
    return y;
  } else if constexpr (K == kAdd || K == kAdc) {
    const std::uint32_t z = x + y + (K == kAdc ? fc >> 31 : 0);
    fc = place_carries<T>((x & y) | ((x | y) & ~z));
    fz = fs = extend<T>(z);
    return z;
  } else if constexpr (K == kSub || K == kCmp || K == kSbb) {
    const std::uint32_t z = x - y - (K == kSbb ? fc >> 31 : 0);
    fc = place_carries<T>((~x & y) | (~(x ^ y) & z));
    fz = fs = extend<T>(z);
    return z;
  } else {
    const std::uint32_t z = K == kOr ? x | y : K == kXor ? x ^ y : x & y;
    fc = 0;
    fz = fs = extend<T>(z);
    return z;
  }
}

}  // namespace citcat::fast
