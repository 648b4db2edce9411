#include "monitor/store_class.h"

#include <cstddef>

namespace citcat::monitor {
namespace {

bool is_prefix(std::uint8_t byte, CodeSize size) {
  switch (byte) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xf2:
    case 0xf3:
      return true;
    default:
      return size == CodeSize::bits64 && (byte & 0xf0) == 0x40;  // REX
  }
}

/// Opcodes behind 0F whose operand in memory, if they have one, is read.
bool only_reads_0f(std::uint8_t opcode, std::uint8_t modrm) {
  if (opcode >= 0x40 && opcode <= 0x4f) return true;           // CMOVcc
  if (opcode >= 0x50 && opcode <= 0x76) return true;           // arithmetic, loads of MMX and SSE
  if (opcode >= 0x80 && opcode <= 0x8f) return true;           // Jcc
  if (opcode >= 0x90 && opcode <= 0x9f) return modrm >= 0xc0;  // SETcc
  if (opcode >= 0xc8 && opcode <= 0xcf) return true;           // BSWAP
  if (opcode >= 0xd0 && opcode != 0xd6 && opcode != 0xe7 && opcode != 0xf7) return true;
  switch (opcode) {
    case 0x0d:
    case 0x18:
    case 0x1f:
    case 0x10:
    case 0x14:
    case 0x15:
    case 0x28:
    case 0x2a:
    case 0x2c:
    case 0x2d:
    case 0x2e:
    case 0x2f:
    case 0xa3:
    case 0xaf:
    case 0xb6:
    case 0xb7:
    case 0xb8:
    case 0xbc:
    case 0xbd:
    case 0xbe:
    case 0xbf:
    case 0xc2:
    case 0xc6:
      return true;
    case 0xba:
      return (modrm >> 3 & 7) == 4;  // BT
    default:
      return false;
  }
}

bool only_reads(std::uint8_t opcode, std::uint8_t modrm, CodeSize size) {
  const bool in_register = modrm >= 0xc0;
  const unsigned reg = modrm >> 3 & 7;
  if (opcode < 0x40) {
    // ADD … CMP; the rest of these rows are prefixes, decimal adjustments and segment registers.
    const unsigned form = opcode & 7;
    if (form < 2) return in_register || opcode >= 0x38;
    return form < 6 || (opcode & 0xe7) == 0x27;  // DAA, DAS, AAA, AAS
  }
  if (opcode < 0x50) return true;                    // INC, DEC
  if (opcode < 0x58) return false;                   // PUSH
  if (opcode < 0x60) return true;                    // POP
  if (opcode >= 0x70 && opcode < 0x80) return true;  // Jcc
  if (opcode >= 0x80 && opcode < 0x84) return in_register || reg == 7;
  if (opcode >= 0x90 && opcode < 0x9a) return true;  // XCHG, CBW, CWD
  if (opcode >= 0xb0 && opcode < 0xc0) return true;  // MOV of an immediate
  if (opcode >= 0xf8 && opcode < 0xfe) return true;  // CLC … STD
  switch (opcode) {
    case 0x63:
      return in_register || size == CodeSize::bits64;  // MOVSXD, ARPL before it
    case 0x69:
    case 0x6b:
    case 0x84:
    case 0x85:
    case 0x8a:
    case 0x8b:
    case 0x8d:
    case 0x9e:
    case 0x9f:
    case 0xa0:
    case 0xa1:
    case 0xa8:
    case 0xa9:
    case 0xc2:
    case 0xc3:
    case 0xc9:
    case 0xd7:
    case 0xe0:
    case 0xe1:
    case 0xe2:
    case 0xe3:
    case 0xe9:
    case 0xeb:
    case 0xf5:
      return true;
    case 0x86:
    case 0x87:
    case 0x88:
    case 0x89:
    case 0xc0:
    case 0xc1:
    case 0xc6:
    case 0xc7:
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
    case 0xfe:
      return in_register;
    case 0xf6:
    case 0xf7:
      return in_register || (reg != 2 && reg != 3);
    case 0xff:
      return (in_register && reg < 2) || reg == 4;  // INC, DEC; JMP
    default:
      return false;
  }
}

}  // namespace

bool may_store(std::span<const std::uint8_t> bytes, CodeSize size) {
  std::size_t at = 0;
  while (at < bytes.size() && is_prefix(bytes[at], size)) ++at;
  if (at == bytes.size()) return true;
  const bool two = bytes[at] == 0x0f;
  if (two && ++at == bytes.size()) return true;
  // Without one all bits are set: that of a register. Opcodes without ModRM do not look at it.
  const std::uint8_t modrm = at + 1 < bytes.size() ? bytes[at + 1] : 0xff;
  return two ? !only_reads_0f(bytes[at], modrm) : !only_reads(bytes[at], modrm, size);
}

}  // namespace citcat::monitor
