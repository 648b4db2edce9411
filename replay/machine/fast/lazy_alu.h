#pragma once
// Arithmetic with flags that are computed only when something reads them (LazyFlags).

#include <cstdint>
#include <type_traits>

#include "replay/machine/fast/fast_state.h"
#include "x86/decode/operation.h"

namespace citcat::fast {

/// Products and dividends of 64-bit operands.
__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

template <class T>
struct SignedOf : std::make_signed<T> {};
template <>
struct SignedOf<Uint128> {
  using type = Int128;
};
template <class T>
using Signed = typename SignedOf<T>::type;

/// What operations on T are calculated in.
template <class T>
using Register = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <class T>
inline constexpr std::uint8_t kBytes = sizeof(T);
template <class T>
inline constexpr unsigned kBits = 8 * sizeof(T);

/// Carries out of each bit of an operation on T, where LazyFlags wants them.
template <class T>
inline std::uint32_t place_carries(Register<T> carries) {
  const auto low = static_cast<std::uint32_t>(carries);
  if constexpr (sizeof(T) == 8) {
    constexpr std::uint32_t kUpper = LazyFlags::kCarry | LazyFlags::kNextToCarry;
    return (static_cast<std::uint32_t>(carries >> 32) & kUpper) | (low & LazyFlags::kHalf);
  } else if constexpr (sizeof(T) == 4) {
    return low;
  } else {
    return low << (32 - kBits<T>) | (low & LazyFlags::kHalf);
  }
}
template <class T>
inline Register<T> extend(Register<T> value) {
  using S = Signed<Register<T>>;
  return static_cast<Register<T>>(S{static_cast<Signed<T>>(value)});
}
/// ZF, SF and PF of a result: LazyFlags::z and ::s.
template <class T>
inline void set_result(Register<T> value, std::uint32_t& fz, std::uint32_t& fs) {
  if constexpr (sizeof(T) == 8) {
    const auto low = static_cast<std::uint32_t>(value),
               high = static_cast<std::uint32_t>(value >> 32);
    fz = low | high;
    fs = (high & ~0xffu) | (low & 0xff);
  } else {
    fz = fs = extend<T>(value);
  }
}
inline bool carry(std::uint32_t fc) { return (fc & LazyFlags::kCarry) != 0; }
inline std::uint32_t overflow_bit(std::uint32_t fc) { return (fc ^ fc << 1) & LazyFlags::kCarry; }
/// CF, OF (in bit 31 each), AF as LazyFlags::c.
inline std::uint32_t make_carries(std::uint32_t cf, std::uint32_t of, std::uint32_t half = 0) {
  return cf | (cf ^ of) >> 1 | half;
}
template <class T>
inline std::uint32_t top(T value) {  // its sign in bit 31
  if constexpr (sizeof(T) == 8) {
    return static_cast<std::uint32_t>(value >> 32) & LazyFlags::kCarry;
  } else {
    return static_cast<std::uint32_t>(value) << (32 - kBits<T>)&LazyFlags::kCarry;
  }
}

constexpr bool alu_reads(Operation k) { return k != Operation::mov; }
constexpr bool alu_writes(Operation k) { return k != Operation::cmp && k != Operation::test; }

template <Operation K, class T>
inline Register<T> alu(Register<T> x, Register<T> y, std::uint32_t& fz, std::uint32_t& fs,
                       std::uint32_t& fc) {
  if constexpr (K == Operation::mov) {
    return y;
  } else if constexpr (K == Operation::add || K == Operation::adc) {
    const Register<T> z = x + y + (K == Operation::adc ? fc >> 31 : 0);
    fc = place_carries<T>((x & y) | ((x | y) & ~z));
    set_result<T>(z, fz, fs);
    return z;
  } else if constexpr (K == Operation::sub || K == Operation::cmp || K == Operation::sbb) {
    const Register<T> z = x - y - (K == Operation::sbb ? fc >> 31 : 0);
    fc = place_carries<T>((~x & y) | (~(x ^ y) & z));
    set_result<T>(z, fz, fs);
    return z;
  } else {
    const Register<T> z = K == Operation::or_ ? x | y : K == Operation::xor_ ? x ^ y : x & y;
    fc = 0;
    set_result<T>(z, fz, fs);
    return z;
  }
}

}  // namespace citcat::fast
