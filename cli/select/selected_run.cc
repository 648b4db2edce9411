#include "cli/select/selected_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/placed_recording.h"
#include "cli/trace_run.h"
#include "formats/io/error.h"
#include "formats/io/json_text.h"
#include "formats/io/temporary.h"
#include "replay/trace/trace_reader.h"
#include "tools/host/tool_output.h"

namespace citcat {
namespace {

using Print = std::function<void(const std::string&)>;

/// A group's name in each of its lines: a key of JSON, the first column of CSV.
std::string with_group(const std::string& lines, const std::string& group, TextForm form) {
  const std::string mark = form == TextForm::json
                               ? "{\"group\":" + json_text(nlohmann::ordered_json(group)) + ","
                               : '"' + group + "\",";
  std::string out;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size() - 1) + 1;
    out += mark;
    at += form == TextForm::json ? 1 : 0;
    out += lines.substr(at, end - at);
    at = end;
  }
  return out;
}

/// The records of a trace that was made of a selection.
void print_records(TraceReader& reader, TraceText& text, const Print& print) {
  print_trace(reader, {~std::uint64_t{0}, 0}, text, print);
}

/// The trace of one group. `first`: none was printed before.
void print_group(TraceReader& reader, const std::string& group, bool first, TextForm form,
                 TraceText& text, const Print& print) {
  std::string head = text.head();
  if (form == TextForm::text) {
    print(group + ":\n");
  } else if (first && !head.empty()) {
    print("group," + head);
  }
  print_records(reader, text, [&](const std::string& printed) {
    // The head comes with the first piece.
    std::string lines = printed;
    if (!head.empty()) lines.erase(0, head.size());
    head.clear();
    print(form == TextForm::text ? lines : with_group(lines, group, form));
  });
}

}  // namespace

SelectedExport export_selected(const SelectedRun& run, const tools::ExporterRow& exporter,
                               const std::string& format, const std::string& path,
                               const Console& console) {
  if (run.range.within_repeat()) throw UsageError("--from and --to must not lie within a REP");
  const PlacedRecording placed = open_placed(run.recording, console);
  ExportRequest request;
  request.exporter = &exporter;
  request.format = format;
  request.path = path;
  request.plan = run.plan;
  request.plan.range = run.range.instructions();
  SelectedExport exported{run_export(placed.file, std::move(request), console)};
  TraceRunResult result;
  result.report = exported.result.report;
  result.differs_before = exported.result.differs_before;
  result.warn(console);
  return exported;
}

ExitCode print_selected(const SelectedRun& run, TextForm form, int bits, const Print& print,
                        const Console& console) {
  const Temporary folder(temporary_folder() + "/citcat", Temporary::Kind::folder);
  const std::string path = folder.path() + "/selected.kt.zst";
  const SelectedExport exported =
      export_selected(run, kt_exporter(), selected_kt(run.addresses, run.processes), path, console);
  if (exported.exit_code() != ExitCode::ok) return exported.exit_code();
  TraceReaderOptions options;
  options.events = true;
  options.wide = true;
  options.process_records = run.processes;
  if (run.plan.by.empty()) {
    TraceReader reader(path, options);
    TraceText text(form, bits);
    print_records(reader, text, print);
    return ExitCode::ok;
  }
  bool first = true;
  for (const auto& [group, totals] : exported.result.totals.at("groups").items()) {
    TraceReader reader(tools::grouped_path(path, group), options);
    TraceText text(form, bits);
    print_group(reader, group, first, form, text, print);
    first = false;
  }
  return ExitCode::ok;
}

}  // namespace citcat
