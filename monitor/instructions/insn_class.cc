#include "monitor/instructions/insn_class.h"

#include <algorithm>
#include <vector>

#include "monitor/instructions/misdone.h"
#include "monitor/instructions/segment_use.h"

namespace citcat::monitor {
namespace {

using Class = InstructionClass;

/// All that any processor has: what one of them lacks, the emulator refuses with #UD.
DecodedInstruction decode(std::span<const std::uint8_t> bytes, CodeSize size) {
  CodeMode mode;
  mode.bits32 = size == CodeSize::bits32;
  mode.bits64 = size == CodeSize::bits64;
  mode.real_or_v86 = false;
  return decode_instruction(bytes, mode, CpuModel::x86_64);
}

InsnKind string_kind(Operation operation) {
  switch (operation) {
    case Operation::movs:
      return InsnKind::movs;
    case Operation::cmps:
      return InsnKind::cmps;
    case Operation::stos:
      return InsnKind::stos;
    case Operation::lods:
      return InsnKind::lods;
    default:
      return InsnKind::scas;
  }
}

/// Instructions that the decoder has in no class of their own.
InsnKind kind_of_operation(const DecodedInstruction& info) {
  if (info.is(Operation::popa)) return InsnKind::pop_all;
  if (info.is(Operation::clflush)) return InsnKind::flush_line;
  const bool locked_neg = info.is(Operation::neg) && info.lock && !info.register_form;
  return locked_neg ? InsnKind::locked_neg : InsnKind::plain;
}

/// Control instructions leave the pointers alone (Intel SDM vol. 1, 8.1.8).
InsnKind x87_kind(Operation operation) {
  switch (operation) {
    case Operation::fninit:
      return InsnKind::x87_init;
    case Operation::fnsave:
      return InsnKind::x87_save;
    case Operation::fnstenv:
      return InsnKind::x87_store;
    case Operation::fldenv:
    case Operation::frstor:
      return InsnKind::x87_load;
    case Operation::fnclex:
    case Operation::feni:
    case Operation::fdisi:
    case Operation::fsetpm:
    case Operation::fldcw:
    case Operation::fnstcw:
    case Operation::fnstsw:
      return InsnKind::plain;
    default:
      return InsnKind::x87;
  }
}

InsnKind extended_state_kind(const DecodedInstruction& info) {
  constexpr std::uint8_t kGroup9 = 0xc7;  // XSAVEC, XSAVES, XRSTORS
  if (info.opcode == kGroup9) return InsnKind::compacted_state;
  if (info.is(Operation::xrstor)) return InsnKind::xrstor;
  return info.is(Operation::xsaveopt) ? InsnKind::xsaveopt : InsnKind::xsave;
}

InsnKind kind_of(const DecodedInstruction& info) {
  switch (info.kind) {
    case Class::string:
      return string_kind(info.row->operation);
    case Class::ins:
      return InsnKind::ins;
    case Class::outs:
      return InsnKind::outs;
    case Class::in:
      return InsnKind::in;
    case Class::out:
      return InsnKind::out;
    case Class::hlt:
      return InsnKind::halt;
    case Class::cpuid:
      return InsnKind::cpuid;
    case Class::rdtsc:
      return InsnKind::rdtsc;
    case Class::rdtscp:
      return InsnKind::rdtscp;
    case Class::rdmsr:
      return InsnKind::rdmsr;
    case Class::wrmsr:
      return InsnKind::wrmsr;
    case Class::rdpmc:
      return InsnKind::rdpmc;
    case Class::random:
      return info.is(Operation::rdrand) ? InsnKind::rdrand : InsnKind::rdseed;
    case Class::mov_to_cr:
    case Class::lmsw:
    case Class::clts:
      return InsnKind::control_register;
    case Class::lgdt:
    case Class::lidt:
      return InsnKind::descriptor_table;
    case Class::lldt:
      return InsnKind::local_table;
    case Class::ltr:
      return InsnKind::task_register;
    case Class::invlpg:
      return InsnKind::invlpg;
    case Class::cache_flush:
      return info.is(Operation::invd) ? InsnKind::invd : InsnKind::wbinvd;
    case Class::int_n:
    case Class::int3:
    case Class::into:
      return InsnKind::software_interrupt;
    case Class::icebp:
      return InsnKind::icebp;
    case Class::push_segment:
      // Whole slots of 8 bytes in 64-bit mode.
      return info.bits64 ? InsnKind::plain : InsnKind::push_segment;
    case Class::pop_segment:
      return info.bits64 ? InsnKind::plain : InsnKind::pop_segment;
    case Class::iret:
      return InsnKind::iret;
    case Class::rsm:
      return InsnKind::resume;
    case Class::far_return:
      return InsnKind::far_return;
    case Class::far_call:
    case Class::far_jump:
      return InsnKind::far_transfer;
    case Class::fxsave:
      return InsnKind::fxsave;
    case Class::fxrstor:
      return InsnKind::fxrstor;
    case Class::x87:
      return x87_kind(info.row->operation);
    case Class::emms:
      return InsnKind::emms;
    case Class::xsave:
    case Class::xrstor:
      return extended_state_kind(info);
    case Class::xgetbv:
      return InsnKind::xgetbv;
    case Class::xsetbv:
      return InsnKind::xsetbv;
    default:
      return kind_of_operation(info);
  }
}

bool is_mmx(OperandForm form) {
  return form == OperandForm::Pq || form == OperandForm::Qd || form == OperandForm::Qq;
}

MmxUse mmx_use(const DecodedInstruction& info) {
  const auto& operands = info.row->operands;
  if (info.mandatory_prefix != 0 || std::none_of(operands.begin(), operands.end(), is_mmx))
    return MmxUse::none;
  const bool converts =
      info.is(Operation::cvtpi2ps) || info.is(Operation::cvtps2pi) || info.is(Operation::cvttps2pi);
  return converts ? MmxUse::behind_operand : MmxUse::before_operand;
}

bool is_string(InsnKind kind) {
  return accesses_per_iteration(kind) != 0 || kind == InsnKind::outs;
}
bool is_port(InsnKind kind) {
  return kind == InsnKind::in || kind == InsnKind::out || kind == InsnKind::ins ||
         kind == InsnKind::outs;
}

/// Ports have no operands of eight bytes, nor have the fields of x87 environments.
std::uint8_t operand_bytes(const DecodedInstruction& info, InsnKind kind) {
  constexpr std::uint8_t kWidestPort = 4;
  if (is_port(kind)) return std::min(info.operand_bytes, kWidestPort);
  const bool sized = is_string(kind) || kind == InsnKind::far_return || kind == InsnKind::rdrand ||
                     kind == InsnKind::rdseed;
  if (sized) return info.operand_bytes;
  return info.kind == Class::x87 && info.operand_bytes == 2 ? 2 : 4;
}

/// Where a return finds the outer SS: IRET after EIP, CS, EFLAGS and ESP; far RET after EIP, CS,
/// what it releases, and ESP (Intel SDM vol. 2).
std::uint16_t stack_segment_at(const DecodedInstruction& info, InsnKind kind) {
  const unsigned word = info.operand_bytes;
  if (kind == InsnKind::iret) return static_cast<std::uint16_t>(4 * word);
  if (kind == InsnKind::far_return) return static_cast<std::uint16_t>(3 * word + info.immediate);
  return 0;
}

/// Loads of segment registers mark descriptors as accessed. LTR, which marks one as busy, writes a
/// dword as the emulator does.
bool marks_descriptor(const DecodedInstruction& info) {
  return info.kind == Class::pop_segment || info.kind == Class::mov_to_segment ||
         info.kind == Class::load_far_pointer;
}

bool calls_system(const DecodedInstruction& info) {
  constexpr std::uint32_t kLinux = 0x80;
  return info.kind == Class::syscall || info.kind == Class::sysenter ||
         (info.kind == Class::int_n && info.immediate == kLinux);
}

/// Bytes of the opcode, with those that select its map.
std::uint8_t opcode_bytes(const DecodedInstruction& info) {
  switch (static_cast<OpcodeMap>(info.opcode_map)) {
    case OpcodeMap::m0F:
      return 2;
    case OpcodeMap::m38:
    case OpcodeMap::m3A:
      return 3;
    default:
      return 1;
  }
}

/// CLFLUSH and its relatives access nothing, so they are decoded without an operand. INVLPG has its
/// own in the same place.
MemoryOperand flushed(std::span<const std::uint8_t> bytes, CodeSize size, std::size_t modrm_at) {
  constexpr std::uint8_t kInvlpg = 0x01, kInvlpgReg = 7 << 3;
  std::vector<std::uint8_t> other(bytes.begin(), bytes.end());
  other[modrm_at - 1] = kInvlpg;
  other[modrm_at] |= kInvlpgReg;
  return decode(other, size).operands[0];
}

void describe_operands(const DecodedInstruction& info, InsnDetails& out) {
  const auto operands = std::span(info.operands).first(info.operand_count);
  out.updates_memory = std::any_of(operands.begin(), operands.end(),
                                   [](const MemoryOperand& o) { return o.read && o.write; });
  if (!operands.empty()) out.operand = operands.front();
  if (out.kind == InsnKind::x87 && !info.register_form) out.data_segment = out.operand.segment;
}

void describe(const DecodedInstruction& info, InsnDetails& out) {
  out.kind = kind_of(info);
  out.repeated = info.is_repeated();
  out.loads_cr3 = info.kind == Class::mov_to_cr && info.reg_field == 3;
  out.marks_descriptor = marks_descriptor(info);
  out.calls_system = calls_system(info);
  out.reverses = info.is(Operation::movbe);
  out.mmx = mmx_use(info);
  out.branch = info.control_flow;
  out.operand_bytes = operand_bytes(info, out.kind);
  out.port_in_dx = is_string(out.kind) || info.row->operands[0] == OperandForm::DX ||
                   info.row->operands[1] == OperandForm::DX;
  if (is_port(out.kind)) out.port = static_cast<std::uint8_t>(info.immediate);
  out.stack_segment_at = stack_segment_at(info, out.kind);
  if (out.kind == InsnKind::x87)
    out.fpu_opcode = static_cast<std::uint16_t>((info.opcode & 7) << 8 | info.modrm);
  out.modrm_offset = static_cast<std::uint8_t>(info.prefix_bytes + opcode_bytes(info));
  out.address_bytes = static_cast<std::uint8_t>(info.address_bits / 8);
  out.segment_override = info.segment_override;
  out.destination = info.rm_field;
  describe_operands(info, out);
}

/// VEX and EVEX, in the places of LES, LDS and BOUND.
bool is_vector_prefix(std::uint8_t opcode) {
  return opcode == 0x62 || opcode == 0xc4 || opcode == 0xc5;
}

OpcodePrefixes prefixes_of(std::span<const std::uint8_t> bytes) {
  const auto has = [&](std::uint8_t prefix) {
    return std::find(bytes.begin(), bytes.end(), prefix) != bytes.end();
  };
  return {has(0x66), has(0xf2) || has(0xf3)};
}

/// MOV from and to DRn.
bool moves_debug_register(std::span<const std::uint8_t> opcode) {
  return opcode.size() > 1 && opcode[0] == 0x0f && (opcode[1] == 0x21 || opcode[1] == 0x23);
}

}  // namespace

InsnDetails classify(std::span<const std::uint8_t> bytes, CodeSize size) {
  const DecodedInstruction info = decode(bytes, size);
  InsnDetails out;
  if (info.state == DecodeState::needs_more_bytes || info.prefix_bytes >= bytes.size()) return out;
  const auto opcode = bytes.subspan(info.prefix_bytes);
  out.rex = info.rex;
  const bool exchanges =
      (opcode[0] & 0xfe) == 0x86 && opcode.size() > 1 && (opcode[1] & 0xc0) != 0xc0;
  out.locked = info.lock || exchanges;  // Intel SDM vol. 3, 8.1.2.1
  if (info.state == DecodeState::ok) {
    describe(info, out);
    if (out.kind == InsnKind::flush_line) out.operand = flushed(bytes, size, out.modrm_offset);
    if (moves_debug_register(opcode)) out.kind = InsnKind::debug_register;
    if (size != CodeSize::bits64) describe_segment_use(info, out);
  } else if (size == CodeSize::bits64 && is_vector_prefix(opcode[0])) {
    out.kind = InsnKind::vector;
  }
  note_misdone(opcode, prefixes_of(bytes.first(info.prefix_bytes)), size, out);
  out.misdone = out.why_misdone != nullptr;
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
