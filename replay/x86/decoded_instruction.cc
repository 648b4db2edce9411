// Addresses of an instruction's accesses and of its KT record, from the registers.

#include "replay/x86/decoded_instruction.h"

namespace citcat {
namespace {

using Kind = InstructionClass;

LinearAddr kt_target(const DecodedInstruction& info, std::uint32_t eip,
                     const std::uint32_t* segment_bases) {
  if (info.kind == Kind::far_jump || info.kind == Kind::far_call) {
    const std::uint32_t base = info.real_or_v86 ? std::uint32_t{info.far_selector} << 4 : 0;
    return linear32(base, info.far_offset);
  }
  std::uint32_t target = eip + info.length + static_cast<std::uint32_t>(info.target_displacement);
  if (info.operand_bytes == 2) target &= 0xffff;
  return linear32(segment_bases[kCs], target);
}

}  // namespace

std::uint32_t special_operand_offset(const MemoryOperand& operand, const std::uint64_t* regs,
                                     bool stack32) {
  MemoryOperand plain = operand;
  plain.kind = OperandKind::address;
  std::uint32_t offset = operand_offset(plain, regs, stack32);
  if (operand.kind == OperandKind::table) {
    offset += static_cast<std::uint32_t>(regs[kEax]) & 0xff;
  } else if (operand.kind == OperandKind::address_after_pop) {
    const auto esp = static_cast<std::uint32_t>(regs[kEsp]);
    const std::uint32_t popped =
        stack32 ? esp + operand.size : (esp & 0xffff0000) | ((esp + operand.size) & 0xffff);
    offset += popped - esp;
  } else if (operand.kind == OperandKind::bit_string) {
    // Bits are numbered from the base address in both directions, in units of the operand.
    const auto bits = static_cast<std::uint32_t>(regs[operand.bit_register]);
    const std::int32_t unit =
        operand.size == 4 ? static_cast<std::int32_t>(bits) >> 5
                          : static_cast<std::int16_t>(static_cast<std::uint16_t>(bits)) >> 4;
    offset += static_cast<std::uint32_t>(unit * static_cast<std::int32_t>(operand.size));
  }
  return wrap_offset(offset, operand.width, stack32);
}

LinearAddr kt_address(const DecodedInstruction& info, unsigned slot, std::uint32_t eip,
                      const std::uint64_t* regs, const std::uint32_t* segment_bases, bool stack32) {
  const EaSlot& ea = info.ea[slot];
  const auto stack = [&](Gpr pointer, std::uint32_t below) {
    const std::uint32_t offset = static_cast<std::uint32_t>(regs[pointer]) - below;
    return linear32(segment_bases[kSs], wrap_offset(offset, AddressWidth::stack, stack32));
  };
  switch (ea.source) {
    case EaSource::operand:
      return operand_linear(info.operands[ea.argument], regs, segment_bases, stack32);
    case EaSource::target:
      return kt_target(info, eip, segment_bases);
    case EaSource::stack_push:
      return stack(kEsp, ea.argument);
    case EaSource::stack_pop:
      return stack(kEsp, 0);
    case EaSource::frame:
      return stack(kEbp, 0);
    case EaSource::reg: {
      const auto offset = static_cast<std::uint32_t>(regs[ea.argument]);
      return linear32(segment_bases[kCs], info.operand_bytes == 2 ? offset & 0xffff : offset);
    }
  }
  return {};
}

}  // namespace citcat
