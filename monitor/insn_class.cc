#include "monitor/insn_class.h"

#include "monitor/misdone.h"

namespace citcat::monitor {
namespace {

/// Group 15 (0F AE): FXSAVE, FXRSTOR and what came later. Memory forms only.
void classify_0fae(std::uint8_t modrm, bool operand_prefix, InsnClass& out) {
  if (modrm >= 0xc0) return;
  const unsigned reg = (modrm >> 3) & 7;
  if (reg == 7 || (reg == 6 && operand_prefix)) {
    out.kind = InsnKind::flush_line;  // CLFLUSH, CLFLUSHOPT, CLWB
    return;
  }
  switch (reg) {
    case 0:
      out.kind = InsnKind::fxsave;
      break;
    case 1:
      out.kind = InsnKind::fxrstor;
      break;
    case 4:
      out.kind = InsnKind::xsave;
      break;
    case 5:
      out.kind = InsnKind::xrstor;
      break;
    case 6:
      out.kind = InsnKind::xsaveopt;
      break;
    default:
      break;
  }
}

/// Group 7 (0F 01).
void classify_0f01(std::uint8_t modrm, InsnClass& out) {
  const unsigned reg = (modrm >> 3) & 7;
  if (reg == 6) {
    out.kind = InsnKind::control_register;  // LMSW
  } else if (modrm < 0xc0) {
    if (reg == 2 || reg == 3) out.kind = InsnKind::descriptor_table;  // LGDT, LIDT
    if (reg == 7) out.kind = InsnKind::invlpg;
  } else if (modrm == 0xd0 || modrm == 0xd1) {
    out.kind = modrm == 0xd0 ? InsnKind::xgetbv : InsnKind::xsetbv;
  } else if (modrm == 0xf9) {
    out.kind = InsnKind::rdtscp;
  }
}

/// Group 9 (0F C7): XSAVEC, XSAVES and XRSTORS, beside CMPXCHG8B; RDRAND and RDSEED of registers.
void classify_0fc7(std::uint8_t modrm, bool operand16, InsnClass& out) {
  const unsigned reg = (modrm >> 3) & 7;
  if (modrm < 0xc0 && reg >= 3 && reg <= 5) out.kind = InsnKind::compacted_state;
  if (modrm < 0xc0 || reg < 6) return;
  out.kind = reg == 6 ? InsnKind::rdrand : InsnKind::rdseed;
  out.destination = static_cast<std::uint8_t>((modrm & 7) | ((out.rex & kRexB) != 0 ? 8 : 0));
  out.operand_bytes = (out.rex & kRexW) != 0 ? 8 : operand16 ? 2 : 4;
}

/// Instructions behind 0F, without a prefix, whose operands are MMX registers (Intel SDM vol. 2,
/// tables ).
MmxUse mmx_use(std::uint8_t opcode, std::uint8_t next) {
  const unsigned row = opcode >> 4;
  switch (opcode) {
    case 0x2a:
    case 0x2c:
    case 0x2d:
      return MmxUse::behind_operand;  // conversions from and to floating point
    case 0x38:
      return next <= 0x0b || (next >= 0x1c && next <= 0x1e) ? MmxUse::before_operand : MmxUse::none;
    case 0x3a:
      return next == 0x0f ? MmxUse::before_operand : MmxUse::none;  // PALIGNR
    case 0x6c:
    case 0x6d:
    case 0x77:
    case 0x78:
    case 0x79:
    case 0x7a:
    case 0x7b:
    case 0x7c:
    case 0x7d:
    case 0xd0:
    case 0xd6:
    case 0xe6:
    case 0xf0:
    case 0xff:
      return MmxUse::none;
    case 0xc4:
    case 0xc5:
      return MmxUse::before_operand;
    default:
      return row == 6 || row == 7 || row >= 0xd ? MmxUse::before_operand : MmxUse::none;
  }
}

void classify_0f(std::span<const std::uint8_t> rest, bool operand_prefix, CodeSize size,
                 InsnClass& out) {
  if (rest.empty()) return;
  const std::uint8_t modrm = rest.size() > 1 ? rest[1] : 0;
  switch (rest[0]) {
    case 0x00:
      if (((modrm >> 3) & 7) == 2) out.kind = InsnKind::local_table;
      if (((modrm >> 3) & 7) == 3) out.kind = InsnKind::task_register;
      break;
    case 0x01:
      classify_0f01(modrm, out);
      break;
    case 0x05:
      // SYSCALL; LOADALL of a 286 before it.
      out.calls_system = true;
      out.branch = true;
      break;
    case 0x07:
      out.branch = true;  // SYSRET
      break;
    case 0x06:
    case 0x22:
      out.loads_cr3 = rest[0] == 0x22 && ((modrm >> 3) & 7) == 3 && (out.rex & kRexR) == 0;
      out.kind = InsnKind::control_register;
      break;
    case 0x08:
      out.kind = InsnKind::invd;
      break;
    case 0x09:
      out.kind = InsnKind::wbinvd;
      break;
    case 0x30:
      out.kind = InsnKind::wrmsr;
      break;
    case 0x31:
      out.kind = InsnKind::rdtsc;
      break;
    case 0x32:
      out.kind = InsnKind::rdmsr;
      break;
    case 0x33:
      out.kind = InsnKind::rdpmc;
      break;
    case 0x77:
      out.kind = InsnKind::emms;
      break;
    case 0xa0:
    case 0xa8:
      // FS, GS: whole slots of 8 bytes in 64-bit mode
      if (size != CodeSize::bits64) out.kind = InsnKind::push_segment;
      break;
    case 0xa1:
    case 0xa9:
      if (size != CodeSize::bits64) out.kind = InsnKind::pop_segment;
      break;
    case 0xa2:
      out.kind = InsnKind::cpuid;
      break;
    case 0x34:
    case 0x35:
      out.calls_system = rest[0] == 0x34;
      out.branch = true;  // SYSENTER, SYSEXIT
      break;
    case 0xae:
      classify_0fae(modrm, operand_prefix, out);
      break;
    case 0xc7:
      classify_0fc7(modrm, operand_prefix != (size == CodeSize::bits16), out);
      break;
    default:
      if (rest[0] >= 0x80 && rest[0] <= 0x8f) out.branch = true;
      break;
  }
}

bool classify_string(std::uint8_t opcode, bool repeat, bool operand16, InsnClass& out) {
  switch (opcode & 0xfe) {
    case 0x6c:
      out.kind = InsnKind::ins;
      break;
    case 0x6e:
      out.kind = InsnKind::outs;
      break;
    case 0xa4:
      out.kind = InsnKind::movs;
      break;
    case 0xa6:
      out.kind = InsnKind::cmps;
      break;
    case 0xaa:
      out.kind = InsnKind::stos;
      break;
    case 0xac:
      out.kind = InsnKind::lods;
      break;
    case 0xae:
      out.kind = InsnKind::scas;
      break;
    default:
      return false;
  }
  out.repeated = repeat;
  out.port_in_dx = true;
  const bool port = out.kind == InsnKind::ins || out.kind == InsnKind::outs;
  const bool wide = (out.rex & kRexW) != 0 && !port;
  out.operand_bytes = (opcode & 1) == 0 ? 1 : operand16 ? 2 : wide ? 8 : 4;
  return true;
}

bool classify_port(std::uint8_t opcode, std::uint8_t immediate, bool operand16, InsnClass& out) {
  if ((opcode & 0xf4) != 0xe4) return false;  // E4-E7, EC-EF
  out.kind = (opcode & 2) != 0 ? InsnKind::out : InsnKind::in;
  out.port_in_dx = (opcode & 8) != 0;
  out.port = immediate;
  out.operand_bytes = (opcode & 1) == 0 ? 1 : operand16 ? 2 : 4;
  return true;
}

/// One-byte opcodes that read and then write a memory operand named by ModRM.
bool updates_memory(std::uint8_t opcode, std::uint8_t modrm) {
  if (modrm >= 0xc0) return false;
  const unsigned reg = (modrm >> 3) & 7;
  if (opcode < 0x38) return (opcode & 6) == 0;  // ADD … XOR with memory as the destination
  switch (opcode) {
    case 0x80:
    case 0x81:
    case 0x82:
    case 0x83:
      return reg != 7;
    case 0x86:
    case 0x87:
      return true;
    case 0xc0:
    case 0xc1:
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
      return true;
    case 0xf6:
    case 0xf7:
      return reg == 2 || reg == 3;
    case 0xfe:
    case 0xff:
      return reg < 2;
    default:
      return false;
  }
}

/// Loads of segment registers, which mark descriptors as accessed. LTR, which marks one as busy,
/// writes a dword as the emulator does.
bool marks_descriptor(std::uint8_t opcode, std::uint8_t modrm) {
  switch (opcode) {
    case 0x07:
    case 0x17:
    case 0x1f:
    case 0x8e:
      return true;
    case 0xc4:
    case 0xc5:
      return modrm < 0xc0;  // LES, LDS
    default:
      return false;
  }
}

/// The same for opcodes behind 0F: POP FS and GS, LSS, LFS, LGS.
bool marks_descriptor_0f(std::uint8_t opcode) {
  switch (opcode) {
    case 0xa1:
    case 0xa9:
    case 0xb2:
    case 0xb4:
    case 0xb5:
      return true;
    default:
      return false;
  }
}

/// Opcodes behind 0F that update memory: BTS, BTR, BTC, SHLD, SHRD, CMPXCHG, XADD, CMPXCHG8B.
bool updates_memory_0f(std::uint8_t opcode, std::uint8_t modrm) {
  if (modrm >= 0xc0) return false;
  switch (opcode) {
    case 0xa4:
    case 0xa5:
    case 0xab:
    case 0xac:
    case 0xad:
    case 0xb0:
    case 0xb1:
    case 0xb3:
    case 0xbb:
    case 0xc0:
    case 0xc1:
      return true;
    case 0xba:
      return ((modrm >> 3) & 7) >= 5;
    case 0xc7:
      return ((modrm >> 3) & 7) == 1;
    default:
      return false;
  }
}

/// Transfers to other segments. Returns may load SS: IRET finds it behind EIP, CS, EFLAGS and ESP;
/// far RET behind EIP, CS, what it releases, and ESP (Intel SDM vol. 2).
void classify_far(std::uint8_t opcode, std::span<const std::uint8_t> immediate, bool operand16,
                  InsnClass& out) {
  const unsigned word = operand16 ? 2 : (out.rex & kRexW) != 0 ? 8 : 4;
  const std::uint8_t next = immediate.empty() ? 0 : immediate[0];
  if (opcode == 0xcf) {
    out.kind = InsnKind::iret;
    out.stack_segment_at = static_cast<std::uint16_t>(4 * word);
  } else if (opcode == 0xca || opcode == 0xcb) {
    const unsigned released =
        opcode == 0xca && immediate.size() >= 2 ? immediate[0] | immediate[1] << 8 : 0;
    out.kind = InsnKind::far_return;
    out.operand_bytes = static_cast<std::uint8_t>(word);
    out.stack_segment_at = static_cast<std::uint16_t>(3 * word + released);
  } else if (opcode == 0x9a || opcode == 0xea || (opcode == 0xff && ((next >> 3) & 1) != 0)) {
    // FF /3 and /5, of the branches /2 to /5.
    out.kind = InsnKind::far_transfer;
  }
}

/// The segment of a memory operand: SS behind EBP or ESP, unless a prefix says otherwise.
std::uint8_t operand_segment(std::span<const std::uint8_t> modrm, const InsnClass& what) {
  if (what.segment_override >= 0) return static_cast<std::uint8_t>(what.segment_override);
  const unsigned mod = modrm[0] >> 6, rm = modrm[0] & 7;
  bool stack = false;
  if (what.address_bytes == 2) {
    stack = rm == 2 || rm == 3 || (rm == 6 && mod != 0);
  } else {
    const unsigned base = rm == 4 && modrm.size() > 1 ? modrm[1] & 7u : rm;
    if ((what.rex & kRexB) != 0) return 3;  // R12 and R13
    stack = (rm == 4 && base == 4) || (base == 5 && mod != 0);
  }
  return stack ? 2 : 3;
}

/// D8-DF. Control instructions leave the pointers alone (Intel SDM vol. 1, 8.1.8).
void classify_x87(std::uint8_t opcode, std::span<const std::uint8_t> modrm, bool operand16,
                  InsnClass& out) {
  if (modrm.empty()) return;
  out.operand_bytes = operand16 ? 2 : 4;
  const unsigned reg = (modrm[0] >> 3) & 7;
  const bool memory = modrm[0] < 0xc0;
  if (!memory && opcode == 0xdb && (modrm[0] & 0xf8) == 0xe0) {
    if (modrm[0] == 0xe3) out.kind = InsnKind::x87_init;
  } else if (memory && opcode == 0xdd && reg == 6) {
    out.kind = InsnKind::x87_save;
  } else if (memory && opcode == 0xd9 && reg == 6) {
    out.kind = InsnKind::x87_store;
  } else if (memory && reg == 4 && (opcode == 0xd9 || opcode == 0xdd)) {
    out.kind = InsnKind::x87_load;
  } else if ((memory && opcode == 0xd9 && reg > 4) || (memory && opcode == 0xdd && reg == 7) ||
             (!memory && opcode == 0xdf && modrm[0] == 0xe0)) {
    // Other control instructions.
  } else {
    out.kind = InsnKind::x87;
    out.fpu_opcode = static_cast<std::uint16_t>((opcode & 7) << 8 | modrm[0]);
    if (memory) out.data_segment = operand_segment(modrm, out);
  }
}

bool is_branch(std::uint8_t opcode, std::uint8_t modrm) {
  if (opcode >= 0x70 && opcode <= 0x7f) return true;
  if (opcode >= 0xe0 && opcode <= 0xe3) return true;  // LOOP, JCXZ
  if (opcode >= 0xe8 && opcode <= 0xeb) return true;  // CALL, JMP
  if (opcode == 0xff) {
    const unsigned reg = (modrm >> 3) & 7;
    return reg >= 2 && reg <= 5;
  }
  switch (opcode) {
    case 0x9a:
    case 0xc2:
    case 0xc3:
    case 0xca:
    case 0xcb:
    case 0xcf:
      return true;
    default:
      return false;
  }
}

struct Prefixes {
  std::size_t size = 0;
  bool operand = false, address = false, repeat = false, lock = false;
};

Prefixes take_prefixes(std::span<const std::uint8_t> bytes, CodeSize size, InsnClass& out) {
  Prefixes found;
  std::size_t& at = found.size;
  for (; at < bytes.size(); ++at) {
    const std::uint8_t b = bytes[at];
    if (b == 0x66)
      found.operand = true;
    else if (b == 0x67)
      found.address = true;
    else if (b == 0xf2 || b == 0xf3)
      found.repeat = true;
    else if (b == 0x26)
      out.segment_override = 0;
    else if (b == 0x2e)
      out.segment_override = 1;
    else if (b == 0x36)
      out.segment_override = 2;
    else if (b == 0x3e)
      out.segment_override = 3;
    else if (b == 0x64)
      out.segment_override = 4;
    else if (b == 0x65)
      out.segment_override = 5;
    else if (b == 0xf0)
      found.lock = true;
    else
      break;
  }
  if (size != CodeSize::bits64) return found;
  // The other segments have no base that counts. REX stands last (Intel SDM vol. 2, 2.2.1).
  if (out.segment_override < 4) out.segment_override = -1;
  if (at < bytes.size() && (bytes[at] & 0xf0) == 0x40) out.rex = bytes[at++];
  return found;
}

/// The one-byte opcodes that 64-bit mode lacks or uses otherwise: PUSH and POP of segment
/// registers, PUSHA, POPA, INTO, far CALL and JMP with an immediate; VEX and EVEX in the places of
/// LES, LDS and BOUND.
bool is_other_in_64_bits(std::uint8_t opcode) {
  switch (opcode) {
    case 0x06:
    case 0x07:
    case 0x0e:
    case 0x16:
    case 0x17:
    case 0x1e:
    case 0x1f:
    case 0x60:
    case 0x61:
    case 0x62:
    case 0x82:
    case 0x9a:
    case 0xc4:
    case 0xc5:
    case 0xce:
    case 0xea:
      return true;
    default:
      return false;
  }
}

bool is_neg(std::uint8_t opcode, std::uint8_t modrm) {
  return (opcode & 0xfe) == 0xf6 && (modrm >> 3 & 7) == 3;
}

bool is_vector_prefix(std::uint8_t opcode) {
  return opcode == 0x62 || opcode == 0xc4 || opcode == 0xc5;
}

/// BMI1 and BMI2, which have VEX prefixes and operands in general registers: ANDN, BLSR and its
/// like, BZHI, PDEP, PEXT, MULX, BEXTR, SHLX, SARX, SHRX and RORX (Intel SDM vol. 2, A.3).
bool is_bit_manipulation(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < 4 || bytes[0] != 0xc4) return false;
  const unsigned map = bytes[1] & 0x1f, opcode = bytes[3];
  return map == 3 ? opcode == 0xf0 : map == 2 && opcode >= 0xf2 && opcode <= 0xf7 && opcode != 0xf4;
}

}  // namespace

InsnClass classify(std::span<const std::uint8_t> bytes, CodeSize size) {
  InsnClass out;
  const Prefixes prefixes = take_prefixes(bytes, size, out);
  const std::size_t at = prefixes.size;
  if (at == bytes.size()) return out;
  const bool narrow = size == CodeSize::bits16;
  const bool operand16 = prefixes.operand != narrow && (out.rex & kRexW) == 0;
  const unsigned addresses = size == CodeSize::bits64 ? 8 : 4;
  out.address_bytes =
      static_cast<std::uint8_t>(prefixes.address != narrow ? addresses / 2 : addresses);
  const std::uint8_t opcode = bytes[at];
  const std::uint8_t next = at + 1 < bytes.size() ? bytes[at + 1] : 0;
  out.modrm_offset = static_cast<std::uint8_t>(at + 1);
  note_misdone(bytes.subspan(at), {prefixes.operand, prefixes.repeat}, size, out);

  if (opcode == 0x0f) {
    out.modrm_offset = static_cast<std::uint8_t>(at + 2);
    classify_0f(bytes.subspan(at + 1), prefixes.operand, size, out);
    const std::uint8_t modrm = at + 2 < bytes.size() ? bytes[at + 2] : 0xff;
    out.updates_memory = updates_memory_0f(next, modrm);
    out.marks_descriptor = marks_descriptor_0f(next);
    // Behind a prefix their opcodes are others' or nobody's.
    const bool prefixed = prefixes.operand || prefixes.repeat || prefixes.lock;
    if (prefixed && is_of_extended_state(out.kind)) out.kind = InsnKind::plain;
    // Behind F3 stands RDPID.
    const bool random = out.kind == InsnKind::rdrand || out.kind == InsnKind::rdseed;
    if (random && prefixes.repeat) out.kind = InsnKind::plain;
    if (!prefixes.operand && !prefixes.repeat) out.mmx = mmx_use(next, modrm);
    return out;
  }
  if (size == CodeSize::bits64 && is_other_in_64_bits(opcode)) {
    if (is_vector_prefix(opcode) && !is_bit_manipulation(bytes.subspan(at)))
      out.kind = InsnKind::vector;
    return out;
  }
  out.marks_descriptor = marks_descriptor(opcode, next);
  if (classify_string(opcode, prefixes.repeat, operand16, out) ||
      classify_port(opcode, next, operand16, out)) {
    // done
  } else if ((opcode & 0xf8) == 0xd8) {
    classify_x87(opcode, bytes.subspan(at + 1), operand16, out);
  } else if ((opcode & 0xe7) == 0x06) {
    out.kind = InsnKind::push_segment;  // ES, CS, SS, DS
  } else if (opcode == 0x07 || opcode == 0x17 || opcode == 0x1f) {
    out.kind = InsnKind::pop_segment;
  } else if (opcode == 0x61) {
    out.kind = InsnKind::pop_all;
  } else if (opcode == 0xf4) {
    out.kind = InsnKind::halt;
  } else if (opcode == 0xf1) {
    out.kind = InsnKind::icebp;
    out.branch = true;
  } else if (opcode >= 0xcc && opcode <= 0xce) {
    out.kind = InsnKind::software_interrupt;
    out.calls_system = opcode == 0xcd && next == 0x80;
    out.branch = true;
  } else if (is_branch(opcode, next)) {
    out.branch = true;
    classify_far(opcode, bytes.subspan(at + 1), operand16, out);
  } else {
    out.updates_memory = updates_memory(opcode, next);
    if (prefixes.lock && is_neg(opcode, next)) out.kind = InsnKind::locked_neg;
  }
  return out;
}

bool moves_environment(InsnKind kind) {
  return kind == InsnKind::x87_load || kind == InsnKind::x87_store || kind == InsnKind::x87_save;
}

bool is_of_extended_state(InsnKind kind) {
  switch (kind) {
    case InsnKind::xsave:
    case InsnKind::xsaveopt:
    case InsnKind::xrstor:
    case InsnKind::xgetbv:
    case InsnKind::xsetbv:
    case InsnKind::compacted_state:
      return true;
    default:
      return false;
  }
}

bool delivers_itself(InsnKind kind) {
  return kind == InsnKind::software_interrupt || kind == InsnKind::icebp;
}

bool loads_code_segment(InsnKind kind) {
  return kind == InsnKind::far_transfer || kind == InsnKind::far_return || kind == InsnKind::iret;
}

unsigned accesses_per_iteration(InsnKind kind) {
  switch (kind) {
    case InsnKind::movs:
    case InsnKind::cmps:
    case InsnKind::ins:
      return 2;
    case InsnKind::stos:
    case InsnKind::lods:
    case InsnKind::scas:
    case InsnKind::outs:
      return 1;
    default:
      return 0;
  }
}

}  // namespace citcat::monitor
