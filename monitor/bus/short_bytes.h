#pragma once
// Comparing operands and instructions, which are so short that a call would take longer.

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace citcat::monitor {

/// The first bytes and the last ones, which may be the same.
template <typename T>
bool ends_are_equal(const std::uint8_t* a, const std::uint8_t* b, std::size_t size) {
  const auto differ = [&](std::size_t at) {
    T x, y;
    std::memcpy(&x, a + at, sizeof x);
    std::memcpy(&y, b + at, sizeof y);
    return x != y;
  };
  return !differ(0) && !differ(size - sizeof(T));
}

inline bool are_equal(const std::uint8_t* a, const std::uint8_t* b, std::size_t size) {
  if (size > 16) return std::memcmp(a, b, size) == 0;
  if (size >= 8) return ends_are_equal<std::uint64_t>(a, b, size);
  if (size >= 4) return ends_are_equal<std::uint32_t>(a, b, size);
  if (size >= 2) return ends_are_equal<std::uint16_t>(a, b, size);
  return size == 0 || *a == *b;
}

/// Copies 1, 2, 4 or 8 bytes.
inline void copy_operand(std::uint8_t* to, const std::uint8_t* from, std::size_t size) {
  const auto copy = [&](auto value) {
    std::memcpy(&value, from, sizeof value);
    std::memcpy(to, &value, sizeof value);
  };
  switch (size) {
    case 1:
      return copy(std::uint8_t{});
    case 2:
      return copy(std::uint16_t{});
    case 4:
      return copy(std::uint32_t{});
    default:
      return copy(std::uint64_t{});
  }
}

}  // namespace citcat::monitor
