#include "monitor/instructions/segment_use.h"

#include <span>

#include "monitor/instructions/segment_limits.h"

namespace citcat::monitor {
namespace {

using Class = InstructionClass;

/// CMPS reads through two segments; the emulator may read the permission map for INS and OUTS.
bool reaches_data_alone(const DecodedInstruction& info, const InsnClass& what) {
  switch (what.kind) {
    case InsnKind::plain:
      return !what.marks_descriptor && !looks_up_descriptor(info);
    case InsnKind::x87:
    case InsnKind::movs:
    case InsnKind::stos:
    case InsnKind::lods:
    case InsnKind::scas:
      return true;
    default:
      return false;
  }
}

std::uint8_t loaded_segments(const DecodedInstruction& info, InsnKind kind) {
  if (loads_code_segment(kind)) return SegmentLimits::kEvery;
  switch (info.kind) {
    case Class::sysenter:
    case Class::sysexit:
    case Class::syscall:
    case Class::sysret:
      return SegmentLimits::kEvery;
    case Class::pop_segment:
    case Class::mov_to_segment:
    case Class::load_far_pointer:
      return static_cast<std::uint8_t>(1u << info.reg_field) & SegmentLimits::kEvery;
    default:
      return 0;
  }
}

}  // namespace

void describe_segment_use(const DecodedInstruction& info, InsnClass& out) {
  out.loaded_segments = loaded_segments(info, out.kind);
  if (!reaches_data_alone(info, out)) return;
  for (const MemoryOperand& operand : std::span(info.operands).first(info.operand_count)) {
    const auto segment = static_cast<std::int8_t>(operand.segment);
    if (operand.read) out.loads_from = segment;
    if (operand.write) out.stores_to = segment;
  }
}

}  // namespace citcat::monitor
