#include "replay/machine/in_flight.h"

namespace citcat {

bool InFlight::copies_string() const { return info != nullptr && info->is(Operation::movs); }

bool InFlight::is_floating_point() const {
  if (info == nullptr) return false;
  switch (info->kind) {
    case InstructionClass::x87:
    case InstructionClass::fxsave:
    case InstructionClass::xsave:
    case InstructionClass::sse:
    case InstructionClass::sse_fp:
    case InstructionClass::mmx:
      return true;
    default:
      return false;
  }
}

}  // namespace citcat
