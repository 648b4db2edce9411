#pragma once
// The VEX prefix of three bytes (Intel SDM vol. 2, 2.3.5). Private to the decoder.

#include <cstdint>
#include <optional>
#include <span>

#include "x86/decode/opcode_row.h"

namespace citcat {

inline constexpr std::size_t kVexBytes = 3;

/// What a VEX prefix stands for.
struct VexPrefix {
  OpcodeMap map = OpcodeMap::v38;
  MandatoryPrefix prefix = MandatoryPrefix::np;
  std::uint8_t rex = 0;          ///< the REX prefix that it has in it; 0 outside 64-bit mode
  std::uint8_t register_ = 0;    ///< that it names: vvvv
  bool names_register = false;   ///< vvvv is not 1111
  bool of_vectors_only = false;  ///< no integer instruction is after it: the rest is not filled in
};

/// The prefix that `code` begins with, its first byte C4 or C5; nothing where it ends before the
/// opcode.
std::optional<VexPrefix> read_vex_prefix(std::span<const std::uint8_t> code, bool bits64);

}  // namespace citcat
