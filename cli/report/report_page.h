#pragma once
// The page of `report`: the page of `view` with the figures of analyses as its second screen.

#include <string>
#include <vector>

#include "cli/report/report_data.h"
#include "cli/view/machine_check.h"

namespace citcat {

/// A recording with what was found out about it.
struct ReportedRecording {
  PlacedRecording placed;
  ReportedRange what;
  ReportedRun run;
};

/// Writes the page of one recording, of several processors', or of two that are compared;
/// `machine`: what several processors saw of each other, or null. Throws Interrupted.
void write_report(const std::string& path, std::vector<ReportedRecording> reported, bool compare,
                  const MachineCheck* machine, const ReportOptions& options,
                  const Console& console);

}  // namespace citcat
