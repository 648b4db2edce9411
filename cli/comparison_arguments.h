#pragma once
// The options of every command that compares a replay with its evidence.

#include "cli/parsing/command_parser.h"
#include "replay/verify/comparison_policy.h"

namespace citcat {

void define_comparison(const CommandParser& parser, ComparisonPolicy& policy);

}  // namespace citcat
