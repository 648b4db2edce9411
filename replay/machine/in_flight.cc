#include "replay/machine/in_flight.h"

namespace citcat {

bool InFlight::copies_string() const {
  constexpr std::uint8_t kMovsb = 0xa4, kMovs = 0xa5;
  return info != nullptr && info->kind == InstructionClass::string && info->opcode_map == 0 &&
         (info->opcode == kMovsb || info->opcode == kMovs);
}

bool InFlight::stores_floating_point() const {
  if (info == nullptr) return false;
  switch (info->kind) {
    case InstructionClass::x87:
    case InstructionClass::fxsave:
    case InstructionClass::sse:
    case InstructionClass::sse_fp:
    case InstructionClass::mmx:
      return true;
    default:
      return false;
  }
}

}  // namespace citcat
