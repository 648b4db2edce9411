#pragma once
// Compares lines of RAM with what the processor and its bus last saw, in whole host registers.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace citcat::monitor {

/// A line of RAM as it is, and as the processor and its bus have last seen it.
struct Line {
  const std::uint8_t* live;
  const std::uint8_t* known;
};

/// The longest lines, which caches have that are split into code and data.
inline constexpr unsigned kLongShift = 5, kLongLine = 1u << kLongShift, kLongSets = 128;

inline bool in_one_long_line(std::uint64_t address, std::uint32_t size) {
  return address % kLongLine + size <= kLongLine;
}
/// The line with this address, of a page that is at `live` and known at `shadow`.
inline Line long_line(const std::uint8_t* live, const std::uint8_t* shadow, std::uint64_t address) {
  const std::uint64_t at = address & 0xfff & ~std::uint64_t{kLongLine - 1};
  return {live + at, shadow + at};
}

/// Half of the longest line, for which the host's processor has registers.
using HalfLine = std::uint64_t __attribute__((vector_size(16)));
inline HalfLine half_line_at(const std::uint8_t* bytes) {
  HalfLine half;
  std::memcpy(&half, bytes, sizeof half);
  return half;
}
inline HalfLine difference_at(Line line, std::uint32_t at) {
  return half_line_at(line.live + at) ^ half_line_at(line.known + at);
}
/// Whether a line holds what is known of it. Lines that are not long have 16 bytes.
[[gnu::always_inline]] inline bool is_known(Line line, bool is_long) {
  HalfLine different = difference_at(line, 0);
  if (is_long) different |= difference_at(line, 16);
  return (different[0] | different[1]) == 0;
}

/// From kOnesBelow[32 - n] on: ones for the first n bytes of a line, zeros for the rest.
inline constexpr auto kOnesBelow = [] {
  std::array<std::uint8_t, 64> bytes{};
  for (std::size_t n = 0; n < 32; ++n) bytes[n] = 0xff;
  return bytes;
}();
/// The same except for the bytes [from, from + size) of it.
[[gnu::always_inline]] inline bool is_known_but_for(Line line, std::uint64_t from,
                                                    std::uint32_t size, bool is_long) {
  const std::uint8_t* const below = kOnesBelow.data() + 32 - from;
  const std::uint8_t* const below_end = below - size;
  HalfLine different = difference_at(line, 0) & (half_line_at(below) | ~half_line_at(below_end));
  if (is_long)
    different |=
        difference_at(line, 16) & (half_line_at(below + 16) | ~half_line_at(below_end + 16));
  return (different[0] | different[1]) == 0;
}

}  // namespace citcat::monitor
