#pragma once
// A run written in a format of other programs: what `replay -o` and `cat` have in common.

#include <nlohmann/json.hpp>
#include <string>

#include "cli/analysis/analysis_run.h"
#include "cli/console.h"
#include "tools/export/exporter_list.h"

namespace citcat {

/// The exporter that writes `path`: what `format` names, with options after a colon, else by the
/// path's ending. Null for KT, which is `format` kt or empty. Throws UsageError where there is no
/// such format.
const tools::ExporterRow* exporter_for(const std::string& format, const std::string& path);
/// The exporter of KT, for a part of a run.
const tools::ExporterRow& kt_exporter();
/// The `format` of a request for it. Throws UsageError for other addresses than linear and offset.
std::string selected_kt(const std::string& addresses, bool processes);
/// Names of all of them, with commas between.
std::string exporter_names();

/// The name in "NAME" or "NAME:key=value,...".
std::string format_name(const std::string& format);
/// "NAME:help", which asks for a description of the format.
bool asks_for_help(const std::string& format);

struct ExportRequest {
  const tools::ExporterRow* exporter = nullptr;
  std::string format;  ///< as given: empty where the path tells
  std::string path;    ///< `-` for the standard output
  AnalysisPlan plan;   ///< but for tools and output; without `where` the exporter's own
  unsigned jobs = 1;
};

struct ExportResult {
  ReplayReport report;
  std::optional<std::uint64_t> differs_before;
  nlohmann::ordered_json totals;  ///< of the exporter; with `by` of each group
  bool sure() const { return report.end != ReplayReport::End::diverged && !differs_before; }
};

/// Replays and writes. A run that diverged from the evidence does not get its name.
ExportResult run_export(const RecordingFile& file, ExportRequest request, const Console& console);

}  // namespace citcat
