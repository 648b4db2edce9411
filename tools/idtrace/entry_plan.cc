#include "tools/idtrace/entry_plan.h"

#include <utility>

namespace citcat::tools {
namespace {

using Entry = IdtraceEntryPlan::Entry;

constexpr std::uint8_t kIndirectGroup = 0xff;  // INC DEC CALL CALL-far JMP JMP-far PUSH

bool transfers_through_memory(const DecodedInstruction& info) {
  return info.indirect && !info.register_form;
}

/// The tag of a reference to an operand.
IdtraceTag reference_tag(const MemoryOperand& operand, bool repeated) {
  if (operand.write && operand.read) return IdtraceTag::read_write;
  if (operand.write) return repeated ? IdtraceTag::repeat_write : IdtraceTag::write;
  return repeated ? IdtraceTag::repeat_read : IdtraceTag::read;
}

Entry operand_entry(const DecodedInstruction& info, const MemoryOperand& operand) {
  const std::uint8_t size = idtrace_size_code(operand.size);
  if (transfers_through_memory(info)) {
    Entry entry;
    entry.tag = IdtraceTag::target;
    entry.pointer_code = size;
    return entry;
  }
  return {reference_tag(operand, info.is_repeated()), size, 0, 0};
}

Entry entry_of(const DecodedInstruction& info, const EaSlot& slot) {
  const std::uint8_t stack = idtrace_size_code(info.operand_bytes);
  switch (slot.source) {
    case EaSource::operand:
      return operand_entry(info, info.operands[slot.argument]);
    case EaSource::target:
    case EaSource::reg:
      return {IdtraceTag::target, 0, 0, 0};
    case EaSource::stack_push:
      return {IdtraceTag::write, idtrace_size_code(slot.argument), 0, 0};
    case EaSource::stack_pop:
    case EaSource::frame:
      return {IdtraceTag::read, stack, 0, 0};
  }
  return {};
}

/// Orders two entries that do not belong to a string.
bool stands_before(const Entry& a, const Entry& b) {
  const auto rank = [](const Entry& e) {
    return e.tag == IdtraceTag::target ? 0 : e.tag == IdtraceTag::read ? 1 : 2;
  };
  return rank(a) < rank(b);
}

bool is_string(const DecodedInstruction& info) {
  return info.kind == InstructionClass::string || info.kind == InstructionClass::ins ||
         info.kind == InstructionClass::outs;
}

}  // namespace

IdtraceEntryPlan idtrace_entry_plan(const DecodedInstruction& info) {
  IdtraceEntryPlan plan;
  plan.count = info.ea_count;
  for (std::uint8_t i = 0; i < info.ea_count; ++i) {
    plan.entries[i] = entry_of(info, info.ea[i]);
    plan.entries[i].slot = i;
  }
  const bool ordered =
      plan.count < 2 || is_string(info) || !stands_before(plan.entries[1], plan.entries[0]);
  if (!ordered) std::swap(plan.entries[0], plan.entries[1]);
  return plan;
}

IdtraceInstruction idtrace_instruction(const DecodedInstruction& info) {
  IdtraceInstruction i;
  i.id = idtrace_instruction_id(info.opcode, info.opcode_map,
                                info.has_modrm ? (info.modrm >> 3) & 7U : 0U);
  i.bytes = info.length;
  const auto entries = static_cast<std::int8_t>(info.ea_count);
  i.entries = info.is_repeated() ? static_cast<std::int8_t>(-entries) : entries;
  return i;
}

IdtraceEntry idtrace_control(const DecodedInstruction& info, std::uint32_t last_byte) {
  IdtraceEntry entry;
  entry.value = last_byte;
  entry.tag = IdtraceTag::control;
  entry.opcode[0] = info.opcode;
  if (info.opcode_map != 0) {
    entry.tag = IdtraceTag::control_two;
    entry.opcode = {0x0f, info.opcode};
  } else if (info.opcode == kIndirectGroup) {
    entry.tag = IdtraceTag::control_two;
    entry.opcode[1] = info.modrm;
  }
  return entry;
}

}  // namespace citcat::tools
