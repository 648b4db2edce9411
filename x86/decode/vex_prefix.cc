#include "x86/decode/vex_prefix.h"

#include <array>

namespace citcat {

std::optional<VexPrefix> read_vex_prefix(std::span<const std::uint8_t> code, bool bits64) {
  constexpr std::uint8_t kShortForm = 0xc5, kMap = 0x1f, kLength = 4, kUnused = 0x78;
  VexPrefix vex;
  vex.of_vectors_only = true;
  if (code[0] == kShortForm) return vex;
  if (code.size() < 2) return std::nullopt;
  const unsigned map = code[1] & kMap;
  if (map != 2 && map != 3) return vex;
  if (code.size() <= kVexBytes) return std::nullopt;
  const std::uint8_t second = code[2];
  if ((second & kLength) != 0) return vex;
  vex.of_vectors_only = false;
  vex.map = map == 2 ? OpcodeMap::v38 : OpcodeMap::v3A;
  constexpr std::array<MandatoryPrefix, 4> kPrefixes = {MandatoryPrefix::np, MandatoryPrefix::p66,
                                                        MandatoryPrefix::pF3, MandatoryPrefix::pF2};
  vex.prefix = kPrefixes[second & 3];
  // R, X, B and vvvv are kept inverted.
  if (bits64) {
    constexpr unsigned kRex = 0x40;
    vex.rex = static_cast<std::uint8_t>(kRex | (second >> 7 & 1u) << 3 | (~code[1] >> 5 & 7u));
  }
  vex.register_ = static_cast<std::uint8_t>(~second >> 3 & (bits64 ? 15 : 7));
  vex.names_register = (second & kUnused) != kUnused;
  return vex;
}

}  // namespace citcat
