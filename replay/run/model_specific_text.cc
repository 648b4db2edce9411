#include "replay/run/model_specific_text.h"

#include <fmt/format.h>

#include "replay/machine/machine.h"
#include "x86/disassembler.h"

namespace citcat {

std::string first_model_specific_text(const Machine& machine) {
  const auto& first = machine.first_model_specific();
  if (!first) return "";
  Disassembler disassembler(0);
  return fmt::format("instruction {} at {:08x}: {}", first->position.instruction,
                     first->linear.value, disassembler.text(first->bytes, first->linear.value));
}

}  // namespace citcat
