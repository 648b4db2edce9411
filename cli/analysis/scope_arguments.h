#pragma once
// The options that say which part of a run is meant, and how it is split: the same in every
// command.

#include <string>
#include <vector>

#include "cli/analysis/analysis_run.h"
#include "cli/parsing/command_parser.h"

namespace citcat {

struct ScopeArguments {
  std::string where, by, window;
  std::vector<std::string> symbols;

  void define(const CommandParser& parser);
  /// Something but everything is meant, or it is split.
  bool selects() const { return !where.empty() || !by.empty() || !window.empty(); }
  void apply_to(AnalysisPlan& plan) const;
};

}  // namespace citcat
