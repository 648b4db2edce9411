#include "replay/machine/units/newer_integers.h"

#include <array>
#include <cstring>
#include <span>

#include "replay/machine/units/operands.h"
#include "x86/newer_integers.h"

namespace citcat {

std::uint64_t NewerIntegers::value_of(OperandForm form) {
  const DecodedInstruction& info = *flight_.info;
  switch (form) {
    case OperandForm::no:
      return 0;
    case OperandForm::Ib:
      return info.immediate;
    case OperandForm::By:
      return cpu_.engine.wide().gpr(info.vex_register);
    case OperandForm::Gy:
    case OperandForm::Gv:
      return cpu_.engine.wide().gpr(info.reg_field);
    default:
      if (info.register_form) return cpu_.engine.wide().gpr(info.rm_field);
      return operands_.read_wide_value(cpu_.linear_of(info.operands[0]), info.operand_bytes);
  }
}

void NewerIntegers::write(OperandForm form, std::uint64_t value) {
  const DecodedInstruction& info = *flight_.info;
  if (form == OperandForm::Mv) {
    std::array<std::uint8_t, 8> bytes;
    std::memcpy(bytes.data(), &value, bytes.size());
    return operands_.write_stores(std::span(bytes).first(info.operand_bytes));
  }
  const int number = form == OperandForm::By ? info.vex_register : info.reg_field;
  cpu_.set_low_part(number, value, info.operand_bytes);
}

void NewerIntegers::execute() {
  const DecodedInstruction& info = *flight_.info;
  const OpcodeRow& row = *info.row;
  const bool updates = row.access == OperandAccess::updates;
  NewerIntegerInput in;
  in.first = value_of(row.operands[updates ? 0 : 1]);
  in.second = value_of(row.operands[updates ? 1 : 2]);
  if (info.is(Operation::mulx)) in.first = cpu_.engine.wide().gpr(kEdx);
  in.bits = 8u * info.operand_bytes;
  in.flags = cpu_.engine.eflags();
  const NewerIntegerResult result = newer_integer(row.operation, in);
  // Where both are one register it has the upper half.
  if (info.is(Operation::mulx)) write(row.operands[1], result.low);
  write(row.operands[0], result.value);
  if (result.flags != in.flags) cpu_.engine.set_eflags(result.flags);
}

}  // namespace citcat
