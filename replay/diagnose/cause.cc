#include "replay/diagnose/cause.h"

#include <array>

namespace citcat {

std::string_view cause_name(CauseKind kind) {
  constexpr std::array<std::string_view, 17> kNames{
      "captured_read",      "captured_port_read",   "captured_write",   "missing_write",
      "extra_write",        "missing_interrupt",    "extra_interrupt",  "interrupt_vector",
      "interrupt_position", "external_write",       "initial_register", "uncertain_result",
      "internal_value",     "missing_transactions", "wrong_start",      "stale_code",
      "emulator_difference"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace citcat
