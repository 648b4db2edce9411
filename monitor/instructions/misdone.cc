#include "monitor/instructions/misdone.h"

namespace citcat::monitor {
namespace {

constexpr char kMemoryOnly[] =
    "an instruction that has a form of memory only was executed with a register, which processors "
    "refuse with #UD";
constexpr char kWithPrefix[] =
    "an instruction was executed after a prefix with which processors refuse it with #UD";

bool names_register(std::uint8_t modrm) { return modrm >= 0xc0; }

/// Opcodes after 0F.
void note_misdone_0f(std::uint8_t opcode, std::uint8_t modrm, OpcodePrefixes prefixes,
                     CodeSize size, InsnDetails& out) {
  const unsigned reg = modrm >> 3 & 7;
  const bool prefixed = prefixes.operand || prefixes.repeat;
  const bool operand16 = prefixes.operand != (size == CodeSize::bits16) && (out.rex & kRexW) == 0;
  switch (opcode) {
    case 0x12:
    case 0x16:  // MOVLPD, MOVHPD
      if (prefixes.operand && !prefixes.repeat && names_register(modrm))
        out.why_misdone = kMemoryOnly;
      break;
    case 0x33:
      out.unknown = "RDPMC was refused, which processors execute";
      break;
    case 0x77:
      if (prefixed) out.why_misdone = kWithPrefix;  // EMMS
      break;
    case 0xc3:
      if (prefixed) out.why_misdone = kWithPrefix;  // MOVNTI
      break;
    case 0xc7:
      if (names_register(modrm)) break;
      if (reg == 0 || reg == 2)
        out.why_misdone =
            "an undefined form of CMPXCHG8B was executed, which processors refuse with #UD";
      if (reg == 1 && prefixes.operand)
        out.unknown =
            "CMPXCHG8B after an operand-size prefix was refused, which processors execute";
      break;
    case 0xe7:  // MOVNTQ, MOVNTDQ
      if (!prefixes.repeat && names_register(modrm)) out.why_misdone = kMemoryOnly;
      break;
    default:
      if (opcode >= 0xc8 && opcode <= 0xcf && operand16)
        out.why_misdone = "BSWAP of 16 bits was executed, whose result no manual defines";
      break;
  }
}

}  // namespace

void note_misdone(std::span<const std::uint8_t> opcode, OpcodePrefixes prefixes, CodeSize size,
                  InsnDetails& out) {
  const auto byte = [&](std::size_t n) { return n < opcode.size() ? opcode[n] : std::uint8_t{0}; };
  const unsigned reg = byte(1) >> 3 & 7;
  switch (opcode.empty() ? 0x90 : opcode[0]) {
    case 0x0f:
      note_misdone_0f(byte(1), byte(2), prefixes, size, out);
      break;
    case 0x8c:
    case 0x8e:
      if (opcode[0] == 0x8e && reg == 1)
        out.why_misdone = "MOV to CS was executed, which processors refuse with #UD";
      else if ((out.rex & kRexR) != 0)
        out.why_misdone =
            "REX.R before MOV of a segment register was taken for a part of the register's number, "
            "where processors ignore it";
      break;
    case 0xc8:
      if (size != CodeSize::bits16 && byte(2) >= 0x80)
        out.why_misdone = "ENTER took its size for a negative number, which processors do not";
      break;
    case 0xd4:
      if (size != CodeSize::bits64 && byte(1) >= 0x80)
        out.why_misdone = "AAM took its operand for a signed number, which processors do not";
      break;
    case 0xf6:
    case 0xf7:
      if (reg == 1)
        out.unknown =
            "the second opcode of TEST (F6 /1, F7 /1) was refused, which processors execute";
      break;
    default:
      break;
  }
}

}  // namespace citcat::monitor
