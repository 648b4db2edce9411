#pragma once
// The options that every command has which compares a replay with its evidence.

#include "cli/parsing/command_parser.h"
#include "replay/verify/comparison_policy.h"

namespace citcat {

void define_comparison(const CommandParser& parser, ComparisonPolicy& policy);

}  // namespace citcat
