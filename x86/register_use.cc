#include "x86/register_use.h"

#include <Zydis/Zydis.h>

#include <array>

#include "x86/zydis_mode.h"

namespace citcat {

namespace {

std::uint64_t use_of(ZydisRegister reg) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  const auto number = static_cast<unsigned>(ZydisRegisterGetId(whole));
  switch (ZydisRegisterGetClass(whole)) {
    case ZYDIS_REGCLASS_GPR64:
      return number < 8 ? kUsesGpr << number : kUsesExtendedGpr << (number & 7);
    case ZYDIS_REGCLASS_FLAGS:
      return kUsesFlags;
    case ZYDIS_REGCLASS_X87:
    case ZYDIS_REGCLASS_MMX:
      return kUsesX87;
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
    case ZYDIS_REGCLASS_ZMM:
      return number < 8 ? kUsesXmm << number : kUsesExtendedXmm << (number & 7);
    case ZYDIS_REGCLASS_SEGMENT:
      return kUsesSegments;
    default:
      return 0;
  }
}

void add(const ZydisDecodedOperand& operand, RegisterUse& use) {
  if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
    use.read |= use_of(operand.mem.base) | use_of(operand.mem.index);
    return;
  }
  if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) return;
  const std::uint64_t bits = use_of(operand.reg.value);
  const bool reads = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
  const bool writes = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
  // A write of 32 bits clears what a register of 64 has above them.
  const ZydisRegisterClass size = ZydisRegisterGetClass(operand.reg.value);
  const bool in_part = size == ZYDIS_REGCLASS_GPR8 || size == ZYDIS_REGCLASS_GPR16;
  const bool conditional = (operand.actions & ZYDIS_OPERAND_ACTION_CONDWRITE) != 0;
  if (reads || (writes && (in_part || conditional))) use.read |= bits;
  if (writes) use.written |= bits;
}

}  // namespace

RegisterUse register_use(std::span<const std::uint8_t> bytes, int bits) {
  RegisterUse use;
  ZydisDecoder decoder;
  ZydisDecodedInstruction instruction;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
  const ZydisMode mode = zydis_mode(bits);
  if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, mode.machine, mode.stack)) ||
      !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(), &instruction,
                                           operands.data()))) {
    return use;
  }
  for (std::size_t i = 0; i < instruction.operand_count; ++i) add(operands[i], use);
  // Flags are distinguished from the other operands, which name EFLAGS as both for all of them.
  use.read &= ~kUsesFlags;
  use.written &= ~kUsesFlags;
  if (instruction.cpu_flags != nullptr) {
    const ZydisAccessedFlags& flags = *instruction.cpu_flags;
    if (flags.tested != 0) use.read |= kUsesFlags;
    if ((flags.modified | flags.set_0 | flags.set_1 | flags.undefined) != 0) {
      use.written |= kUsesFlags;
    }
  }
  return use;
}

}  // namespace citcat
