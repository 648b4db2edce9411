#include "cli/compare/difference_output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace citcat {

nlohmann::ordered_json compared_json(const std::optional<sql::ComparedInstruction>& instruction) {
  if (!instruction) return nullptr;
  return {{"position", instruction->position},
          {"address", fmt::format("{:08x}", instruction->address.value)},
          {"bytes", instruction->bytes},
          {"text", instruction->text},
          {"process", instruction->process},
          {"level", instruction->level}};
}

std::string compared_text(const std::optional<sql::ComparedInstruction>& instruction) {
  if (!instruction) return "the end of the run";
  return fmt::format("instruction {} at {:08x}: {} ({}, level {})", instruction->position,
                     instruction->address.value, instruction->text, instruction->process,
                     instruction->level);
}

}  // namespace citcat
