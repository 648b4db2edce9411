#include "x86/locked_bit_test.h"

#include <algorithm>
#include <array>

#include "x86/decode/opcode_table.h"

namespace citcat {

std::size_t prefixes_of_locked_bit_test(std::span<const std::uint8_t> bytes, bool bits64) {
  constexpr std::uint8_t kLock = 0xf0;
  constexpr std::array<std::uint8_t, 11> kPrefixes = {0x26, 0x2e, 0x36,  0x3e, 0x64, 0x65,
                                                      0x66, 0x67, kLock, 0xf2, 0xf3};
  const auto opcode = std::find_if(bytes.begin(), bytes.end(), [&](std::uint8_t b) {
    const bool rex = bits64 && (b & 0xf0) == 0x40;
    return !rex && std::find(kPrefixes.begin(), kPrefixes.end(), b) == kPrefixes.end();
  });
  if (bytes.end() - opcode < 3 || opcode[0] != 0x0f || opcode[2] < 0xc0) return 0;
  const OpcodeRow* const row =
      find_opcode(OpcodeMap::m0F, opcode[1], MandatoryPrefix::np, opcode[2]).row;
  if (row == nullptr || row->flags.rule != FlagRule::bit_test) return 0;
  if (std::find(bytes.begin(), opcode, kLock) == opcode) return 0;
  return static_cast<std::size_t>(opcode - bytes.begin());
}

}  // namespace citcat
