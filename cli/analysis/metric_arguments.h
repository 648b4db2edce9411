#pragma once
// Metrics in MDL on the command line: --mdl and --metric.

#include <string>
#include <vector>

#include "cli/parsing/command_parser.h"
#include "events/names/symbols.h"
#include "tools/host/report.h"

namespace citcat {

namespace mdl {
class Library;
struct MetricRequest;
}  // namespace mdl

struct MetricArguments {
  std::vector<std::string> files, metrics;

  void define(const CommandParser& parser);
  bool any() const { return !metrics.empty(); }
  /// The same as --tool has it. Throws UsageError where there are files, and no metric.
  std::vector<std::string> tools() const;
  /// The texts are read. Throws FormatError for what is wrong with them.
  void read_into(mdl::Library& library) const;
  std::vector<mdl::MetricRequest> requests() const;
  /// Where code of the metrics goes in a run with these symbols, and what it costs.
  void explain(const Symbols& symbols, tools::Report& report) const;
};

}  // namespace citcat
