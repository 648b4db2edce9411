#pragma once
// The options that every command has which compares a replay with its evidence.

#include <CLI/CLI.hpp>

namespace citcat {

struct ComparisonArguments {
  bool strict = false;       ///< ReplayRunOptions::strict
  bool bit_changes = false;  ///< ReplayRunOptions::bit_changes
};
void define_comparison(CLI::App& app, ComparisonArguments& arguments);

}  // namespace citcat
