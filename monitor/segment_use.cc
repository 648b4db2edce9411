#include "monitor/segment_use.h"

#include <cstddef>

namespace citcat::monitor {
namespace {

constexpr std::int8_t kNone = InsnClass::kNoSegment;
constexpr std::int8_t kEs = 0, kSs = 2, kDs = 3;
constexpr std::uint8_t kEvery = 0x3f;

struct Use {
  std::int8_t load = kNone, store = kNone;
};

std::uint8_t only(unsigned segment) { return static_cast<std::uint8_t>(1u << segment); }

/// Opcodes that use the stack, and those that name their operand by something else than ModRM.
/// False for any other opcode.
bool use_without_modrm(std::uint8_t opcode, std::int8_t data, Use& out) {
  switch (opcode) {
    case 0x60:  // PUSHA
    case 0x68:
    case 0x6a:
    case 0x9c:  // PUSHF
    case 0xe8:
      out = {kNone, kSs};
      return true;
    case 0x9d:  // POPF
    case 0xc2:
    case 0xc3:
    case 0xc9:  // LEAVE
      out = {kSs, kNone};
      return true;
    case 0xc8:  // ENTER
      out = {kSs, kSs};
      return true;
    case 0xa0:
    case 0xa1:
    case 0xa2:
    case 0xa3:  // MOV with an offset
    case 0xd7:  // XLAT
      out = {data, data};
      return true;
    default:
      if ((opcode & 0xf0) != 0x50) return false;
      out = (opcode & 8) == 0 ? Use{kNone, kSs} : Use{kSs, kNone};  // PUSH and POP of a register
      return true;
  }
}

bool has_modrm(std::uint8_t opcode) {
  if (opcode < 0x40) return (opcode & 7) < 4;
  switch (opcode) {
    case 0x62:
    case 0x63:
    case 0x69:
    case 0x6b:
    case 0xc0:
    case 0xc1:
    case 0xc6:
    case 0xc7:
    case 0xf6:
    case 0xf7:
    case 0xfe:
    case 0xff:
      return true;
    default:
      return (opcode >= 0x80 && opcode <= 0x8f) || (opcode >= 0xd0 && opcode <= 0xd3) ||
             (opcode >= 0xd8 && opcode <= 0xdf);
  }
}

/// Of a memory operand that ModRM names.
Use use_of_operand(std::uint8_t opcode, std::uint8_t modrm, std::int8_t operand) {
  const unsigned reg = modrm >> 3 & 7;
  if (opcode == 0x8f) return {kSs, operand};                            // POP
  if (opcode == 0xff && (reg == 2 || reg == 6)) return {operand, kSs};  // CALL, PUSH
  return {operand, operand};
}

/// Opcodes behind 0F.
Use use_behind_0f(std::uint8_t opcode, std::uint8_t modrm, std::int8_t operand, std::int8_t data) {
  switch (opcode) {
    case 0x00:  // VERR and its like read tables, too
      return {kNone, operand};
    case 0x02:
    case 0x03:  // LAR, LSL
    case 0xa1:
    case 0xa9:
      return {};
    case 0xf7:  // MASKMOVQ, MASKMOVDQU
      return {data, data};
    default:
      return modrm < 0xc0 ? Use{operand, operand} : Use{};
  }
}

Use use_of_string(InsnKind kind, std::int8_t data) {
  switch (kind) {
    case InsnKind::movs:
      return {data, kEs};
    case InsnKind::stos:
      return {kNone, kEs};
    case InsnKind::lods:
      return {data, kNone};
    case InsnKind::scas:
      return {kEs, kNone};
    default:
      return {};  // CMPS reads through two; INS and OUTS may read the permission map
  }
}

bool is_plain_data(const InsnClass& what) {
  return (what.kind == InsnKind::plain && !what.marks_descriptor) || what.kind == InsnKind::x87;
}

std::uint8_t loaded_behind_0f(std::uint8_t opcode) {
  switch (opcode) {
    case 0xa1:
    case 0xb4:
      return only(4);
    case 0xa9:
    case 0xb5:
      return only(5);
    case 0xb2:
      return only(2);
    case 0x05:
    case 0x07:
    case 0x34:
    case 0x35:
      return kEvery;  // SYSCALL, SYSENTER and their returns
    default:
      return 0;
  }
}

std::uint8_t loaded_segments(std::uint8_t opcode, std::uint8_t modrm) {
  switch (opcode) {
    case 0x07:
      return only(0);
    case 0x17:
      return only(2);
    case 0x1f:
      return only(3);
    case 0x8e:
      return only(modrm >> 3 & 7) & kEvery;
    case 0xc4:
      return modrm < 0xc0 ? only(0) : std::uint8_t{0};
    case 0xc5:
      return modrm < 0xc0 ? only(3) : std::uint8_t{0};
    default:
      return 0;
  }
}

/// The segment of a memory operand: SS behind EBP or ESP, unless a prefix says otherwise. `modrm`:
/// from ModRM on, not empty.
std::uint8_t operand_segment(std::span<const std::uint8_t> modrm, const InsnClass& what) {
  if (what.segment_override >= 0) return static_cast<std::uint8_t>(what.segment_override);
  const unsigned mod = modrm[0] >> 6, rm = modrm[0] & 7;
  bool stack = false;
  if (what.address_bytes == 2) {
    stack = rm == 2 || rm == 3 || (rm == 6 && mod != 0);
  } else {
    const unsigned base = rm == 4 && modrm.size() > 1 ? modrm[1] & 7u : rm;
    stack = (rm == 4 && base == 4) || (base == 5 && mod != 0);
  }
  return stack ? 2 : 3;
}

}  // namespace

void note_segment_use(std::span<const std::uint8_t> opcode, InsnClass& out) {
  if (opcode.empty()) return;
  const bool wide = opcode[0] == 0x0f;
  const std::size_t at = wide ? 2 : 1;
  const std::uint8_t modrm = opcode.size() > at ? opcode[at] : std::uint8_t{0xff};
  out.loaded_segments = loads_code_segment(out.kind) ? kEvery
                        : wide && opcode.size() > 1  ? loaded_behind_0f(opcode[1])
                                                     : loaded_segments(opcode[0], modrm);
  const auto data =
      out.segment_override >= 0 ? static_cast<std::int8_t>(out.segment_override) : kDs;
  const auto operand =
      modrm < 0xc0 ? static_cast<std::int8_t>(operand_segment(opcode.subspan(at), out)) : kNone;
  Use use = use_of_string(out.kind, data);
  if (is_plain_data(out)) {
    if (wide)
      use = opcode.size() > 1 ? use_behind_0f(opcode[1], modrm, operand, data) : Use{};
    else if (!use_without_modrm(opcode[0], data, use) && has_modrm(opcode[0]))
      use = use_of_operand(opcode[0], modrm, operand);
  }
  out.loads_from = use.load;
  out.stores_to = use.store;
}

}  // namespace citcat::monitor
