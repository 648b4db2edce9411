#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace citcat {

/// Instructions as text, in Intel syntax.
class Disassembler {
 public:
  /// `bits` is the code segment's default size, 16 or 32, or 64 for 64-bit mode; 0 guesses 16 or 32
  /// it from the instructions: a trace knows how long each is, and most lengths are right for one
  /// size only.
  explicit Disassembler(int bits) : bits_(bits == 0 ? 32 : bits), guess_(bits == 0) {}

  /// The instruction that `bytes` are, the whole of them, at the linear address `address`; "(bad)"
  /// for none. Targets of relative branches are linear addresses.
  std::string text(std::span<const std::uint8_t> bytes, std::uint64_t address);
  /// The size that was given, or guessed by now.
  int bits() const { return bits_; }

 private:
  int bits_;
  bool guess_;
};

}  // namespace citcat
