#pragma once
// The part of a run that a scope, windows or groups select, written in any format or printed: what
// `cat` and `dump` have in common.

#include <functional>
#include <string>

#include "cli/analysis/analysis_run.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/kt_text.h"
#include "cli/range_arguments.h"
#include "cli/select/export_run.h"

namespace citcat {

struct SelectedRun {
  std::string recording;
  AnalysisPlan plan;  ///< the scope, and how it is replayed
  RangeArguments range;
  std::string addresses = "linear";
  bool processes = false;  ///< PID and MMU records too
};

struct SelectedExport {
  ExportResult result;
  ExitCode exit_code() const { return result.sure() ? ExitCode::ok : ExitCode::answer_is_no; }
};

/// Writes it to `path` by `exporter`, whose options `format` has. A run that diverged from its
/// evidence is warned of.
SelectedExport export_selected(const SelectedRun& run, const tools::ExporterRow& exporter,
                               const std::string& format, const std::string& path,
                               const Console& console);

/// Prints its records and events with `print`, piece by piece; with groups one after the other,
/// each under its name. `bits`: of all code, 0: as the trace tells.
ExitCode print_selected(const SelectedRun& run, TextForm form, int bits,
                        const std::function<void(const std::string&)>& print,
                        const Console& console);

}  // namespace citcat
