// Stand-ins for the commands of the part "mdl".

#include <vector>

#include "cli/analysis/metric_arguments.h"
#include "cli/parts/absent_command.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

constexpr char kMdlPart[] = "mdl";

}  // namespace

extern const Command kSessionCommand = absent_command<kMdlPart>("session");

void MetricArguments::define(const CommandParser& parser) {
  parser.add_option("--metric", metrics, "Not in this build (CITCAT_PARTS)").repeated();
}

std::vector<std::string> MetricArguments::tools() const {
  if (metrics.empty()) return {};
  throw UsageError(std::string("--metric: this build was made without the part \"") + kMdlPart +
                   "\"; configure it with CITCAT_PARTS=all");
}

void MetricArguments::explain(const Symbols&, tools::Report&) const { tools(); }

}  // namespace citcat
