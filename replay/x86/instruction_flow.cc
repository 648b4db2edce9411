#include "replay/x86/instruction_flow.h"

#include <Zydis/Zydis.h>

#include <array>

#include "events/cpu_state.h"

namespace citcat {
namespace {

std::uint32_t register_bit(ZydisMachineMode mode, ZydisRegister reg) {
  if (reg == ZYDIS_REGISTER_NONE || reg == ZYDIS_REGISTER_EIP || reg == ZYDIS_REGISTER_IP) return 0;
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(mode, reg);
  switch (ZydisRegisterGetClass(reg)) {
    case ZYDIS_REGCLASS_GPR8:
    case ZYDIS_REGCLASS_GPR16:
    case ZYDIS_REGCLASS_GPR32:
      return 1u << (static_cast<unsigned>(ZydisRegisterGetId(whole)) & 7);
    case ZYDIS_REGCLASS_FLAGS:
      return 1u << InstructionFlow::kFlags;
    case ZYDIS_REGCLASS_SEGMENT:
      return 1u << (InstructionFlow::kSegments + static_cast<unsigned>(ZydisRegisterGetId(reg)));
    case ZYDIS_REGCLASS_CONTROL:
    case ZYDIS_REGCLASS_DEBUG:
      return 1u << InstructionFlow::kControl;
    case ZYDIS_REGCLASS_X87:
    case ZYDIS_REGCLASS_MMX:
    case ZYDIS_REGCLASS_XMM:
      return 1u << InstructionFlow::kVector;
    case ZYDIS_REGCLASS_TABLE:
      return 1u << InstructionFlow::kTables;
    default:
      return 0;
  }
}

bool is_partial(const ZydisDecodedOperand& operand) {
  const ZydisRegisterClass c = ZydisRegisterGetClass(operand.reg.value);
  return c == ZYDIS_REGCLASS_GPR8 || c == ZYDIS_REGCLASS_GPR16;
}

/// XOR and SUB of a register with itself: the result does not depend on it.
bool clears(const ZydisDecodedInstruction& instruction, const ZydisDecodedOperand* operands) {
  const bool may =
      instruction.mnemonic == ZYDIS_MNEMONIC_XOR || instruction.mnemonic == ZYDIS_MNEMONIC_SUB;
  return may && operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
         operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
         operands[0].reg.value == operands[1].reg.value;
}

void add_operand(InstructionFlow& flow, ZydisMachineMode mode, const ZydisDecodedOperand& operand) {
  const bool reads = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
  const bool writes = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
  if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
    for (const ZydisRegister reg : {operand.mem.base, operand.mem.index, operand.mem.segment}) {
      flow.addresses |= register_bit(mode, reg);
    }
    return;
  }
  if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) return;
  const std::uint32_t bit = register_bit(mode, operand.reg.value);
  constexpr std::uint32_t kStackPointer = 1u << kEsp;
  const bool implicit_stack =
      bit == kStackPointer && operand.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
  if (reads) (implicit_stack ? flow.addresses : flow.values) |= bit;
  if (!writes) return;
  flow.written |= bit;
  const bool conditional = (operand.actions & ZYDIS_OPERAND_ACTION_CONDWRITE) != 0;
  if ((conditional || is_partial(operand)) && bit != 1u << InstructionFlow::kFlags) {
    flow.values |= bit;
  }
}

}  // namespace

InstructionFlow instruction_flow(std::span<const std::uint8_t> code, int bits) {
  InstructionFlow flow;
  for (const bool wide : {bits == 32, bits != 32}) {
    const ZydisMachineMode mode =
        wide ? ZYDIS_MACHINE_MODE_LEGACY_32 : ZYDIS_MACHINE_MODE_LEGACY_16;
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, mode, wide ? ZYDIS_STACK_WIDTH_32 : ZYDIS_STACK_WIDTH_16);
    ZydisDecodedInstruction instruction;
    std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
    const bool decoded = ZYAN_SUCCESS(
        ZydisDecoderDecodeFull(&decoder, code.data(), code.size(), &instruction, operands.data()));
    if (!decoded || instruction.length != code.size()) continue;
    for (std::size_t i = 0; i < instruction.operand_count; ++i) {
      add_operand(flow, mode, operands[i]);
    }
    if (clears(instruction, operands.data())) flow.values = 0;
    return flow;
  }
  return flow;
}

std::string flow_register_name(unsigned number) {
  constexpr std::array<const char*, 18> kNames{"eax", "ecx", "edx",    "ebx", "esp", "ebp",
                                               "esi", "edi", "eflags", "es",  "cs",  "ss",
                                               "ds",  "fs",  "gs",     "cr",  "fpu", "tables"};
  return number < kNames.size() ? kNames[number] : "?";
}

}  // namespace citcat
