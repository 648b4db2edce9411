#include "x86/decode/addressed_accesses.h"

#include <array>

namespace citcat {

namespace {

constexpr int kNoAddress = -1;

/// Whether the effective address is that of the operand's first access.
bool leads_to(const EaSlot& ea, const MemoryOperand& operand, unsigned number) {
  switch (ea.source) {
    case EaSource::operand:
      return ea.argument == number;
    case EaSource::stack_push:
      return operand.kind == OperandKind::stack_push &&
             operand.displacement == -std::int64_t{ea.argument};
    case EaSource::stack_pop:
      return operand.kind == OperandKind::stack_pop && operand.displacement == 0;
    case EaSource::frame:
      return operand.kind == OperandKind::frame && operand.displacement == 0;
    case EaSource::target:
    case EaSource::reg:
      return false;
  }
  return false;
}

/// The number of the effective address at which operand `number` lies.
int address_of(const DecodedInstruction& info, unsigned number) {
  for (unsigned i = 0; i < info.ea_count; ++i) {
    if (leads_to(info.ea[i], info.operands[number], number)) return static_cast<int>(i);
  }
  return kNoAddress;
}

}  // namespace

bool accesses_follow(const DecodedInstruction& info) {
  for (unsigned n = 0; n < info.operand_count; ++n) {
    const MemoryOperand& operand = info.operands[n];
    const bool accessed = operand.read || operand.write;
    if (!accessed || operand.interleaved || address_of(info, n) == kNoAddress) return false;
  }
  return true;
}

void append_accesses(const DecodedInstruction& info, std::vector<AddressedAccess>& to) {
  const auto append = [&](unsigned number, bool write) {
    const MemoryOperand& operand = info.operands[number];
    for (int i = 0; i < operand.count; ++i) {
      to.push_back({static_cast<std::int16_t>(i * operand.stride), operand.size,
                    static_cast<std::uint8_t>(address_of(info, number)), write});
    }
  };
  for (unsigned n = 0; n < info.operand_count; ++n) append(n, !info.operands[n].read);
  for (unsigned n = 0; n < info.operand_count; ++n) {
    if (info.operands[n].read && info.operands[n].write) append(n, true);
  }
}

}  // namespace citcat
