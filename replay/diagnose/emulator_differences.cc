#include "replay/diagnose/emulator_differences.h"

#include <cstddef>

namespace citcat {
namespace {

/// Instructions by opcode, those after 0F with 0F00h added.
struct EmulatorDifference {
  std::uint16_t first, last;
  int reg;      ///< of ModRM, -1 for any
  bool memory;  ///< in the form with a memory operand only
  std::string_view text;
};

constexpr std::string_view kAtDelivery =
    "gates of the 286, and what gates lead to, are not checked as a processor does";
constexpr std::string_view kAtFarTransfer =
    "limits and presence of the segments of far transfers are not checked as a processor does";
constexpr std::string_view kAtShift = "a shift or rotation of memory by zero writes it back";
constexpr std::string_view kAtMmx = "MMX leaves the upper 16 bits of a register as they were";
constexpr std::string_view kAtFarPointer = "the parts of a far pointer are read in the other order";
constexpr std::string_view kAtPushedSegment =
    "PUSH of a segment register faults because of the upper half of its slot";

constexpr EmulatorDifference kEmulatorDifferences[] = {
    {0x8e, 0x8e, 1, false, "MOV to CS is executed, and not refused with #UD"},
    {0xd4, 0xd4, -1, false, "AAM takes its operand for a signed number"},
    {0xc8, 0xc8, -1, false, "ENTER takes a size of 8000h and more for a negative number"},
    {0xf6, 0xf7, 1, false, "the second opcode of TEST is refused"},
    {0xc0, 0xc1, -1, true, kAtShift},
    {0xd0, 0xd3, -1, true, kAtShift},
    {0x60, 0x61, -1, false, "PUSHA and POPA begin at the other end where they fault"},
    {0x63, 0x63, -1, true, "ARPL that leaves its operand alone faults as a read"},
    {0xa6, 0xa7, -1, false, "if both operands of CMPS fault, the other one is reported"},
    {0xc4, 0xc5, -1, true, kAtFarPointer},
    {0xcc, 0xce, -1, false, kAtDelivery},
    {0xf1, 0xf1, -1, false, kAtDelivery},
    {0x9a, 0x9a, -1, false, kAtFarTransfer},
    {0xea, 0xea, -1, false, kAtFarTransfer},
    {0xca, 0xcb, -1, false, kAtFarTransfer},
    {0xcf, 0xcf, -1, false, kAtFarTransfer},
    {0xff, 0xff, 3, true, kAtFarTransfer},
    {0xff, 0xff, 5, true, kAtFarTransfer},
    {0x06, 0x06, -1, false, kAtPushedSegment},
    {0x0e, 0x0e, -1, false, kAtPushedSegment},
    {0x16, 0x16, -1, false, kAtPushedSegment},
    {0x1e, 0x1e, -1, false, kAtPushedSegment},
    {0xd8, 0xdf, -1, false, "x87 results are rounded otherwise, and C1 is not computed"},
    {0x0fa0, 0x0fa0, -1, false, kAtPushedSegment},
    {0x0fa8, 0x0fa8, -1, false, kAtPushedSegment},
    {0x0f21, 0x0f21, 6, false, "DR6 names one of several breakpoints that an instruction met"},
    {0x0f33, 0x0f33, -1, false, "RDPMC is refused"},
    {0x0fc8, 0x0fcf, -1, false, "BSWAP of 16 bits swaps all of a register"},
    {0x0fc7, 0x0fc7, 1, true, "CMPXCHG8B reads its operand in two parts"},
    {0x0fb2, 0x0fb2, -1, true, kAtFarPointer},
    {0x0fb4, 0x0fb5, -1, true, kAtFarPointer},
    {0x0f60, 0x0f7f, -1, false, kAtMmx},
    {0x0fd1, 0x0ffe, -1, false, kAtMmx},
    {0x0fae, 0x0fae, 0, true, "FXSAVE asks for the right to write more than it stores"},
    {0x0fae, 0x0fae, 4, true, "XSAVE asks for the right to write more than it stores"},
    {0x0fbc, 0x0fbd, -1, false, "BSF and BSR that find nothing clear the upper half of a register"},
};

bool stands_before_opcode(std::uint8_t byte, unsigned bits) {
  switch (byte) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xf0:
    case 0xf2:
    case 0xf3:
      return true;
    default:
      return bits == 64 && (byte & 0xf0) == 0x40;  // REX
  }
}

}  // namespace

std::string_view emulator_difference(std::span<const std::uint8_t> code, unsigned bits) {
  std::size_t at = 0;
  while (at < code.size() && stands_before_opcode(code[at], bits)) ++at;
  if (at == code.size()) return "";
  unsigned opcode = code[at++];
  if (opcode == 0x0f && at < code.size()) opcode = 0x0f00 | code[at++];
  const std::uint8_t modrm = at < code.size() ? code[at] : std::uint8_t{0};
  for (const EmulatorDifference& row : kEmulatorDifferences) {
    const bool of_form = !row.memory || modrm < 0xc0;
    const bool of_reg = row.reg < 0 || row.reg == (modrm >> 3 & 7);
    if (opcode >= row.first && opcode <= row.last && of_form && of_reg) return row.text;
  }
  return "";
}

}  // namespace citcat
