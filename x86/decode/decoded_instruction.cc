// Addresses of an instruction's accesses and of its KT record, from the registers.

#include "x86/decode/decoded_instruction.h"

namespace citcat {
namespace {

using Kind = InstructionClass;

LinearAddr kt_target(const DecodedInstruction& info, std::uint64_t ip,
                     const std::uint64_t* segment_bases) {
  if (info.kind == Kind::far_jump || info.kind == Kind::far_call) {
    const std::uint32_t base = info.real_or_v86 ? std::uint32_t{info.far_selector} << 4 : 0;
    return linear32(base, info.far_offset);
  }
  const std::uint64_t target =
      ip + info.length + static_cast<std::uint64_t>(std::int64_t{info.target_displacement});
  if (info.bits64) return LinearAddr{target};
  const auto offset = static_cast<std::uint32_t>(target);
  return linear32(static_cast<std::uint32_t>(segment_bases[kCs]),
                  info.operand_bytes == 2 ? offset & 0xffff : offset);
}

}  // namespace

std::uint64_t special_operand_offset(const MemoryOperand& operand, const std::uint64_t* regs,
                                     bool stack32) {
  MemoryOperand plain = operand;
  plain.kind = OperandKind::address;
  std::uint64_t offset = operand_offset(plain, regs, stack32);
  if (operand.kind == OperandKind::table) {
    offset += regs[kEax] & 0xff;
  } else if (operand.kind == OperandKind::address_after_pop && is_of_64_bit_mode(operand.width)) {
    offset += operand.size;
  } else if (operand.kind == OperandKind::address_after_pop) {
    const auto esp = static_cast<std::uint32_t>(regs[kEsp]);
    const std::uint32_t popped =
        stack32 ? esp + operand.size : (esp & 0xffff0000) | ((esp + operand.size) & 0xffff);
    offset += popped - esp;
  } else if (operand.kind == OperandKind::bit_string) {
    // Bits are numbered from the base address in both directions, in units of the operand.
    const std::uint64_t bits = regs[operand.bit_register];
    const std::int64_t unit = operand.size == 8   ? static_cast<std::int64_t>(bits) >> 6
                              : operand.size == 4 ? static_cast<std::int32_t>(bits) >> 5
                                                  : static_cast<std::int16_t>(bits) >> 4;
    offset += static_cast<std::uint64_t>(unit * operand.size);
  }
  return wrap_offset(offset, operand.width, stack32);
}

LinearAddr kt_address(const DecodedInstruction& info, unsigned slot, std::uint64_t ip,
                      const std::uint64_t* regs, const std::uint64_t* segment_bases, bool stack32) {
  const EaSlot& ea = info.ea[slot];
  const auto stack = [&](Gpr pointer, std::uint32_t below) {
    const AddressWidth width = info.bits64 ? AddressWidth::bits64 : AddressWidth::stack;
    const std::uint64_t offset = wrap_offset(regs[pointer] - below, width, stack32);
    return linear_at(segment_bases[kSs], offset, width);
  };
  switch (ea.source) {
    case EaSource::operand:
      return operand_linear(info.operands[ea.argument], regs, segment_bases, stack32);
    case EaSource::target:
      return kt_target(info, ip, segment_bases);
    case EaSource::stack_push:
      return stack(kEsp, ea.argument);
    case EaSource::stack_pop:
      return stack(kEsp, 0);
    case EaSource::frame:
      return stack(kEbp, 0);
    case EaSource::reg: {
      if (info.bits64) return LinearAddr{regs[ea.argument]};
      const auto offset = static_cast<std::uint32_t>(regs[ea.argument]);
      return linear32(static_cast<std::uint32_t>(segment_bases[kCs]),
                      info.operand_bytes == 2 ? offset & 0xffff : offset);
    }
  }
  return {};
}

}  // namespace citcat
