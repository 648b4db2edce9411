#include "x86/instruction_flow.h"

#include <Zydis/Zydis.h>

#include <array>
#include <optional>

#include "events/machine/cpu_state.h"
#include "x86/zydis_mode.h"

namespace citcat {
namespace {

std::uint32_t register_bit(ZydisMachineMode mode, ZydisRegister reg) {
  if (reg == ZYDIS_REGISTER_NONE) return 0;
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(mode, reg);
  switch (ZydisRegisterGetClass(reg)) {
    case ZYDIS_REGCLASS_GPR8:
    case ZYDIS_REGCLASS_GPR16:
    case ZYDIS_REGCLASS_GPR32:
    case ZYDIS_REGCLASS_GPR64: {
      const auto number = static_cast<unsigned>(ZydisRegisterGetId(whole));
      return 1u << (number < 8 ? number : InstructionFlow::kExtended + (number & 7));
    }
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
    for (const ZydisRegister reg : {operand.mem.base, operand.mem.index}) {
      flow.addresses |= register_bit(mode, reg);
    }
    // In 64-bit mode only these two have a base.
    const ZydisRegister segment = operand.mem.segment;
    const bool has_base = mode != ZYDIS_MACHINE_MODE_LONG_64 || segment == ZYDIS_REGISTER_FS ||
                          segment == ZYDIS_REGISTER_GS;
    if (has_base) flow.addresses |= register_bit(mode, segment);
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

/// Nothing where `code` is not one instruction in code of `bits`.
std::optional<InstructionFlow> flow_in(std::span<const std::uint8_t> code, int bits) {
  const ZydisMode mode = zydis_mode(bits);
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, mode.machine, mode.stack);
  ZydisDecodedInstruction instruction;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
  const bool decoded = ZYAN_SUCCESS(
      ZydisDecoderDecodeFull(&decoder, code.data(), code.size(), &instruction, operands.data()));
  if (!decoded || instruction.length != code.size()) return std::nullopt;
  InstructionFlow flow;
  for (std::size_t i = 0; i < instruction.operand_count; ++i) {
    add_operand(flow, mode.machine, operands[i]);
  }
  if (clears(instruction, operands.data())) flow.values = 0;
  return flow;
}

}  // namespace

InstructionFlow instruction_flow(std::span<const std::uint8_t> code, int bits) {
  auto flow = flow_in(code, bits);
  if (!flow && bits != 64) flow = flow_in(code, bits == 32 ? 16 : 32);
  return flow.value_or(InstructionFlow{});
}

std::string flow_register_name(unsigned number, bool long_mode) {
  constexpr std::array<const char*, InstructionFlow::kRegisters> kNames{
      "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eflags",
      "es",  "cs",  "ss",  "ds",  "fs",  "gs",  "cr",  "fpu", "tables",
      "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
  if (number >= kNames.size()) return "?";
  std::string name = kNames[number];
  if (long_mode && name.front() == 'e' && name != "es") name.front() = 'r';
  return name;
}

}  // namespace citcat
