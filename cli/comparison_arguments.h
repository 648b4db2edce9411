#pragma once
// The options that every command has which compares a replay with its evidence.

#include <CLI/CLI.hpp>

#include "replay/verify/comparison_policy.h"

namespace citcat {

void define_comparison(CLI::App& app, ComparisonPolicy& policy);

}  // namespace citcat
