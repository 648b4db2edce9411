#include "cli/select/export_run.h"

#include "formats/io/error.h"
#include "tools/host/report_renderers.h"

namespace citcat {

std::string format_name(const std::string& format) { return format.substr(0, format.find(':')); }

bool asks_for_help(const std::string& format) { return format.ends_with(":help"); }

const tools::ExporterRow& kt_exporter() { return *tools::find_exporter("kt"); }

std::string selected_kt(const std::string& addresses, bool processes) {
  return "kt:addresses=" + addresses + (processes ? ",processes" : "");
}

std::string exporter_names() {
  std::string names;
  for (const tools::ExporterRow& row : tools::exporter_list()) {
    if (&row != &kt_exporter()) names += (names.empty() ? "" : ", ") + std::string(row.tool->name);
  }
  return names;
}

const tools::ExporterRow* exporter_for(const std::string& format, const std::string& path) {
  if (format == "kt") return nullptr;
  if (format.empty()) return tools::exporter_of_path(path);
  const tools::ExporterRow* const row = tools::find_exporter(format_name(format));
  if (row == nullptr) {
    throw UsageError("--format: expected kt, " + exporter_names() + ", found " +
                     format_name(format));
  }
  return row;
}

ExportResult run_export(const RecordingFile& file, ExportRequest request, const Console& console) {
  AnalysisPlan& plan = request.plan;
  plan.tools = {request.format.empty() ? std::string(request.exporter->tool->name)
                                       : request.format};
  plan.tools_option = "--format";
  plan.output = request.path;
  if (plan.where.empty()) plan.where = request.exporter->where;
  const AnalysisResult run = request.jobs > 1
                                 ? run_parallel_analysis(file, plan, request.jobs, console)
                                 : run_analysis(file, plan, true, console);
  ExportResult result;
  result.report = run.report;
  result.differs_before = run.differs_before;
  if (!result.sure() || !run.analysis) return result;
  tools::Report report;
  if (const tools::Tool* const only = run.analysis->only_tool()) {
    only->report(report);
  } else {
    run.analysis->report(report);
  }
  result.totals = tools::report_json(report);
  return result;
}

}  // namespace citcat
