#pragma once
// Metrics in MDL on the command line: --mdl and --metric.

#include <string>
#include <vector>

#include "cli/parsing/command_parser.h"
#include "tools/mdl/library.h"
#include "tools/mdl/plan.h"

namespace citcat {

struct MetricArguments {
  std::vector<std::string> files, metrics;

  void define(const CommandParser& parser);
  bool any() const { return !metrics.empty(); }
  /// The same as --tool has it. Throws UsageError where there are files, and no metric.
  std::vector<std::string> tools() const;
  /// The texts are read. Throws FormatError for what is wrong with them.
  void read_into(mdl::Library& library) const;
  std::vector<mdl::MetricRequest> requests() const;
};

}  // namespace citcat
