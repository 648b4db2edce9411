#include "replay/x86/register_use.h"

#include <Zydis/Zydis.h>

#include <array>

namespace citcat {
namespace {

/// Bit of the general register that `reg` is a part of; 0 of any other.
std::uint8_t gpr_bit(ZydisMachineMode mode, ZydisRegister reg) {
  switch (ZydisRegisterGetClass(reg)) {
    case ZYDIS_REGCLASS_GPR8:
    case ZYDIS_REGCLASS_GPR16:
    case ZYDIS_REGCLASS_GPR32: {
      const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(mode, reg);
      return static_cast<std::uint8_t>(1U << (static_cast<unsigned>(ZydisRegisterGetId(whole)) & 7));
    }
    default:
      return 0;
  }
}

void add_operand(RegisterUse& use, ZydisMachineMode mode, const ZydisDecodedOperand& operand) {
  if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
    use.reads |= gpr_bit(mode, operand.mem.base);
    use.reads |= gpr_bit(mode, operand.mem.index);
    return;
  }
  if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) return;
  const std::uint8_t bit = gpr_bit(mode, operand.reg.value);
  if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0) use.reads |= bit;
  if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0) use.writes |= bit;
}

}  // namespace

RegisterUse register_use(std::span<const std::uint8_t> bytes, int bits) {
  const ZydisMachineMode mode =
      bits == 16 ? ZYDIS_MACHINE_MODE_LEGACY_16 : ZYDIS_MACHINE_MODE_LEGACY_32;
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, mode, bits == 16 ? ZYDIS_STACK_WIDTH_16 : ZYDIS_STACK_WIDTH_32);
  ZydisDecodedInstruction instruction;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands{};
  RegisterUse use;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(), &instruction,
                                           operands.data()))) {
    return use;
  }
  for (std::size_t i = 0; i < instruction.operand_count; ++i) add_operand(use, mode, operands[i]);
  if (instruction.cpu_flags != nullptr) {
    use.reads_flags = instruction.cpu_flags->tested != 0;
    use.writes_flags = (instruction.cpu_flags->modified | instruction.cpu_flags->set_0 |
                        instruction.cpu_flags->set_1 | instruction.cpu_flags->undefined) != 0;
  }
  return use;
}

}  // namespace citcat
