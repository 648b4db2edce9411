#include "tools/idtrace/idtrace_observer.h"

#include <span>

#include "replay/machine/machine.h"

namespace citcat::tools {
namespace {

/// Whether the level behind the instruction may be another than the one that it ran at.
bool may_change_level(InstructionClass kind) {
  switch (kind) {
    case InstructionClass::far_jump:
    case InstructionClass::far_call:
    case InstructionClass::far_return:
    case InstructionClass::iret:
    case InstructionClass::int_n:
    case InstructionClass::int3:
    case InstructionClass::into:
    case InstructionClass::sysenter:
    case InstructionClass::sysexit:
    case InstructionClass::rsm:
    case InstructionClass::loadall:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::uint32_t IdtraceObserver::level_now() const { return machine_->engine().hflags() & kHfCpl; }

/// A handler that begins by leaving its level is the system's.
std::uint32_t IdtraceObserver::level_of(const DecodedInstruction& info) {
  std::uint32_t level = level_;
  if (!may_change_level(info.kind)) {
    level = level_now();
  } else if (in_handler_ && info.kind != InstructionClass::int_n) {
    level = 0;
  }
  in_handler_ = false;
  level_ = level_now();
  return level;
}

void IdtraceObserver::instruction(const ExecutedInstruction& e, Position now) {
  const bool wanted = wants_level(level_of(*e.info));
  if (!range_.has(now) || !wanted) return;
  output_.instruction(LinearAddr{e.linear}, *e.info, std::span(e.ea, e.ea_count));
}

void IdtraceObserver::block(const ExecutedBlock& block, Position first) {
  if (wants_level(level_now())) return Observer::block(block, first);
  level_of(block.decoded(0));
  range_.has(first);
}

void IdtraceObserver::delivered(const DeliveredEvent&, Position) {
  level_ = level_now();
  in_handler_ = true;
}

}  // namespace citcat::tools
