#pragma once
// Prints instructions for diff and compare.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "sql/compare/run_difference.h"

namespace citcat {

nlohmann::ordered_json compared_json(const std::optional<sql::ComparedInstruction>& instruction);
/// "instruction 5 at c0100000: mov eax, ebx".
std::string compared_text(const std::optional<sql::ComparedInstruction>& instruction);

}  // namespace citcat
