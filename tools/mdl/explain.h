#pragma once

#include <vector>

#include "events/names/symbols.h"
#include "tools/host/report.h"
#include "tools/mdl/plan.h"

namespace citcat::mdl {

/// Where code of the metrics goes, and what it costs each time, known before the run: code has no
/// loops. A step is an operation of the code, or a look at the counters of the constraints.
/// `symbols`: the procedures that are known beforehand. Throws UsageError as make_plan() does.
void explain(const Library& library, const std::vector<MetricRequest>& requests,
             const Symbols& symbols, tools::Report& report);

}  // namespace citcat::mdl
