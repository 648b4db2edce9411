#pragma once

#include <vector>

#include "events/names/symbols.h"
#include "tools/host/report.h"
#include "tools/mdl/plan.h"

namespace citcat::mdl {

/// Where the code of the metrics goes, and what it costs each time; code has no loops, so this is
/// known before the run. A step is an operation, or a check of the constraints' counters.
/// `symbols`: the procedures that are known beforehand. Throws UsageError as make_plan() does.
void explain(const Library& library, const std::vector<MetricRequest>& requests,
             const Symbols& symbols, tools::Report& report);

}  // namespace citcat::mdl
