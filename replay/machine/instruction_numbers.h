#pragma once
// A set of numbers of instructions that are judged together.

#include <algorithm>
#include <array>
#include <cstdint>

namespace citcat {

/// Numbers count from the first instruction. All from kLast on count as one.
class InstructionNumbers {
 public:
  static constexpr std::uint64_t kLast = 127;
  static InstructionNumbers all() {
    InstructionNumbers result;
    result.bits_.fill(~std::uint64_t{0});
    return result;
  }
  void add(std::uint64_t i) {
    i = std::min(i, kLast);
    bits_[i / 64] |= std::uint64_t{1} << i % 64;
  }
  bool contains(std::uint64_t i) const {
    i = std::min(i, kLast);
    return (bits_[i / 64] >> i % 64 & 1) != 0;
  }

 private:
  std::array<std::uint64_t, 2> bits_{};
};

}  // namespace citcat
