#include "capture/bus/early_instructions.h"

#include "events/machine/cpu_traits.h"
#include "x86/decode/decoded_instruction.h"
#include "x86/decode/opcode_table.h"

namespace citcat {
namespace {

/// Nobody says whether there is a coprocessor, and ESC has the same bytes with and without one.
DecodedInstruction decode_early(std::span<const std::uint8_t> bytes, CpuModel cpu) {
  return decode_instruction(bytes, CodeMode{}, cpu);
}

std::optional<BusOp> access_of_stack(AccessPattern accesses) {
  switch (accesses) {
    case AccessPattern::push:
    case AccessPattern::push_all:
    case AccessPattern::push_segment:
    case AccessPattern::call:
    case AccessPattern::call_far:
      return BusOp::data_write;
    case AccessPattern::pop:
    case AccessPattern::pop_all:
    case AccessPattern::pop_segment:
    case AccessPattern::ret:
    case AccessPattern::ret_far:
    case AccessPattern::iret:
      return BusOp::data_read;
    default:
      return std::nullopt;
  }
}

bool is_address(OperandForm form) { return form == OperandForm::Ob || form == OperandForm::Ov; }

}  // namespace

bool is_early_prefix(std::uint8_t byte, CpuModel cpu) {
  return decode_early({&byte, 1}, cpu).prefix_bytes != 0;
}

std::optional<std::size_t> early_instruction_length(std::span<const std::uint8_t> bytes,
                                                    CpuModel cpu) {
  const DecodedInstruction info = decode_early(bytes, cpu);
  if (info.state == DecodeState::needs_more_bytes) return std::nullopt;
  return info.state == DecodeState::ok ? info.length : bytes.size();
}

std::optional<StringAccess> string_access(std::uint8_t opcode, CpuModel cpu) {
  const DecodedInstruction info = decode_early({&opcode, 1}, cpu);
  const bool string = info.kind == InstructionClass::string || info.kind == InstructionClass::ins ||
                      info.kind == InstructionClass::outs;
  if (info.state != DecodeState::ok || !string) return std::nullopt;
  StringAccess access;
  for (const MemoryOperand& operand : std::span(info.operands).first(info.operand_count)) {
    access.reads += operand.read;
    access.writes += operand.write;
  }
  return access;
}

std::optional<BusOp> first_access(std::uint8_t opcode, CpuModel cpu) {
  const OpcodeRow* const row =
      find_opcode(OpcodeMap::one, opcode, MandatoryPrefix::np, std::nullopt).row;
  if (row == nullptr || !row->processors.has(cpu_traits(cpu).instructions)) return std::nullopt;
  if (row->kind == InstructionClass::in) return BusOp::io_read;
  if (row->kind == InstructionClass::out) return BusOp::io_write;
  if (is_address(row->operands[1])) return BusOp::data_read;
  if (is_address(row->operands[0])) return BusOp::data_write;
  return access_of_stack(row->accesses);
}

}  // namespace citcat
