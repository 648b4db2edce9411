// Which branches decided that the steps of a slice ran, if requested.

#include "replay/slice/slice_walk.h"

namespace citcat {

/// Going back, a return leads into what was called, and a call out of it.
void SliceWalk::follow_calls(InstructionClass kind) {
  if (!query_.control) return;
  switch (kind) {
    case InstructionClass::ret:
    case InstructionClass::far_return:
    case InstructionClass::iret:
    case InstructionClass::sysexit:
    case InstructionClass::sysret:
      return enter_callee();
    case InstructionClass::call:
    case InstructionClass::far_call:
    case InstructionClass::sysenter:
    case InstructionClass::syscall:
      return leave_to_caller();
    default:
      return;
  }
}

/// Who called decided about all that the called one did.
void SliceWalk::leave_to_caller() {
  const bool wanted = wants_branch_.back();
  wants_branch_.pop_back();
  if (wants_branch_.empty()) wants_branch_.push_back(false);
  if (wanted) wants_branch_.back() = true;
}

/// Whether the steps after it ran was decided here.
void SliceWalk::decision(const Execution& e) {
  const bool known = !slice_.steps.empty() && slice_.steps.back().position == e.position &&
                     slice_.steps.back().linear == e.code->linear;
  demand_.clear();
  for (const PlaceRange& range : e.flow->decides) {
    demand_span({ValueSpan::Of::places, range.first, range.count}, SliceWay::control);
  }
  // A target in memory; of returns the place is where the call came from.
  const InstructionClass kind = e.code->info.kind;
  const bool returns = kind == InstructionClass::ret || kind == InstructionClass::far_return ||
                       kind == InstructionClass::iret;
  if (!returns) demand_span({ValueSpan::Of::loads, 0, ValueSpan::kAll}, SliceWay::control);
  if (demand_.places.empty() && demand_.memory.empty()) return;
  SliceStep& step = known ? slice_.steps.back() : add_step(SliceWay::control, e.position);
  if (!known) {
    step.linear = e.code->linear;
    step.physical = e.code->physical;
    step.code.assign(e.code->info.bytes.begin(), e.code->info.bytes.begin() + e.code->info.length);
    step.bits = code_segment_bits(e.code->info);
    add_code_input(*e.code, SliceWay::control);
  }
  apply_demand(step);
}

}  // namespace citcat
