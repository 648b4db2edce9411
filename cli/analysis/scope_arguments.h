#pragma once
// The options that say which part of a run is meant, and how it is split: the same in every command.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/analysis/analysis_run.h"

namespace citcat {

struct ScopeArguments {
  std::string where, by, window;
  std::vector<std::string> symbols;

  void define(CLI::App& app);
  /// Something but everything is meant, or it is split.
  bool selects() const { return !where.empty() || !by.empty() || !window.empty(); }
  void apply_to(AnalysisPlan& plan) const;
};

}  // namespace citcat
