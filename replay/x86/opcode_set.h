#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

namespace citcat {

/// One opcode, or all from `first` to `last`.
struct OpcodeRange {
  constexpr OpcodeRange(int only) : first(only), last(only) {}  // NOLINT: lists read as numbers
  constexpr OpcodeRange(int from, int to) : first(from), last(to) {}
  int first, last;
};

/// A set of opcodes of one map, as opcode tables are written: {0x02, {0x40, 0x4f}, 0xa2}.
class OpcodeSet {
 public:
  constexpr OpcodeSet(std::initializer_list<OpcodeRange> ranges) {
    for (const OpcodeRange& range : ranges) {
      for (int opcode = range.first; opcode <= range.last; ++opcode) {
        bits_[static_cast<unsigned>(opcode) / 64] |= std::uint64_t{1} << (opcode % 64);
      }
    }
  }
  constexpr bool has(unsigned opcode) const {
    return (bits_[opcode / 64] >> (opcode % 64) & 1) != 0;
  }

 private:
  std::array<std::uint64_t, 4> bits_{};
};

}  // namespace citcat
