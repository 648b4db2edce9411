// citcat cat: a trace to the standard output, as if it were stored.

#include <fmt/format.h>

#include <csignal>
#include <memory>
#include <string>

#include "cli/analysis/scope_arguments.h"
#include "cli/command.h"
#include "cli/commands/export_run.h"
#include "cli/command_description.h"
#include "cli/file_kind.h"
#include "cli/kt_text.h"
#include "cli/placed_recording.h"
#include "cli/range_arguments.h"
#include "cli/trace_run.h"
#include "formats/io/byte_sink.h"
#include "formats/io/error.h"
#include "formats/io/json_text.h"
#include "formats/io/temporary.h"
#include "formats/kt/kt.h"
#include "replay/trace/kt_sink.h"
#include "replay/trace/trace_reader.h"
#include "tools/host/tool_output.h"

namespace citcat {
namespace {

struct CatArguments {
  std::string file, format = "kt", addresses = "linear";
  RangeArguments range;
  int bits = 0;
  bool processes = false, unchecked = false, from_start = false;
  ScopeArguments scope;
};

/// A recording as KT: straight from the replay.
ExitCode cat_recording(const CatArguments& arguments, ByteSink& out, const Console& console) {
  const PlacedRecording placed = open_placed(arguments.file, console);
  const RecordingFile& file = placed.file;
  KtOptions kt;
  kt.from = arguments.range.first().instruction;
  kt.from_iteration = arguments.range.first().iteration;
  kt.to = arguments.range.end().instruction;
  kt.to_iteration = arguments.range.end().iteration;
  kt.offsets = arguments.addresses == "offset";
  kt.process_records = arguments.processes;
  KtWriter writer(out);
  KtSink trace(writer, kt);
  TraceRunOptions options;
  options.recording = arguments.file;
  options.remember = !placed.search;
  options.range = arguments.range.instructions();
  options.check = !arguments.unchecked;
  options.use_checkpoints = !arguments.from_start;
  const TraceRunResult result = run_trace(file, &trace, options, console);
  writer.flush();
  result.warn(console);
  if (result.sure() && writer.instructions() == 0) {
    arguments.range.require_reached(arguments.file, result.report.instructions);
  }
  return result.sure() ? ExitCode::ok : ExitCode::answer_is_no;
}

/// A recording in a format of others, or the part of it that is selected as KT, to `path`.
ExportResult export_recording(const CatArguments& arguments, const tools::ExporterRow& exporter,
                              const std::string& format, const std::string& path,
                              const Console& console) {
  if (arguments.range.within_repeat()) {
    throw UsageError("--from and --to must not lie within a REP");
  }
  const PlacedRecording placed = open_placed(arguments.file, console);
  ExportRequest request;
  request.exporter = &exporter;
  request.format = format;
  request.path = path;
  arguments.scope.apply_to(request.plan);
  request.plan.range = arguments.range.instructions();
  request.plan.check = !arguments.unchecked;
  request.plan.use_checkpoints = !arguments.from_start;
  ExportResult exported = run_export(placed.file, std::move(request), console);
  TraceRunResult result;
  result.report = exported.report;
  result.differs_before = exported.differs_before;
  result.warn(console);
  return exported;
}

ExitCode code_of(const ExportResult& exported) {
  return exported.sure() ? ExitCode::ok : ExitCode::answer_is_no;
}

void write_record(const KtRecord& record, KtWriter& writer) {
  switch (record.kind) {
    case KtRecord::Kind::instruction:
      writer.instruction(record.instruction);
      break;
    case KtRecord::Kind::process:
      writer.process(record.pid);
      break;
    case KtRecord::Kind::translation:
      writer.translation(record.frame, record.page);
      break;
  }
}

/// A KT file as KT, or anything as text.
void cat_records(const CatArguments& arguments, ByteSink& out) {
  const bool as_kt = arguments.format == "kt";
  const Position to = arguments.range.end();
  TraceReaderOptions options;
  options.offsets = arguments.addresses == "offset";
  options.process_records = arguments.processes;
  options.events = !as_kt;
  // Nothing else needs positions.
  options.notes = !as_kt || arguments.range.first() != Position{} || !arguments.range.to.empty();
  options.check = !arguments.unchecked;
  options.use_checkpoints = !arguments.from_start;
  TraceReader reader(arguments.file, options);
  if (arguments.range.first() != Position{}) reader.seek(arguments.range.first());
  if (!as_kt) {
    TraceText text(parse_form(arguments.format), arguments.bits);
    const bool found = print_trace(reader, to, text, [&](const std::string& lines) {
      out.write({reinterpret_cast<const std::uint8_t*>(lines.data()), lines.size()});
    });
    if (!found) arguments.range.require_reached(arguments.file, reader.instructions());
    return;
  }
  KtWriter writer(out);
  TraceRecord record;
  bool ended = false, any = false;
  while (!(ended = !reader.next(record)) && record.position < to) {
    any = true;
    write_record(record.record, writer);
  }
  writer.flush();
  if (ended && !any) arguments.range.require_reached(arguments.file, reader.instructions());
}

/// A group's name in each of its lines: a key of JSON, the first column of CSV.
std::string with_group(const std::string& lines, const std::string& group, TextForm form) {
  const std::string mark = form == TextForm::json ? "{\"group\":" + json_text(nlohmann::json(group)) + ","
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

/// The trace of one group as lines. `first`: none was printed before.
void print_group(const std::string& path, const std::string& group, bool first,
                 const CatArguments& arguments, ByteSink& out) {
  const TextForm form = parse_form(arguments.format);
  const auto write = [&out](const std::string& text) {
    out.write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  };
  TraceReaderOptions options;
  options.events = true;
  options.process_records = arguments.processes;
  TraceReader reader(path, options);
  TraceText text(form, arguments.bits);
  std::string head = text.head();
  if (form == TextForm::text) {
    write(group + ":\n");
  } else if (first && !head.empty()) {
    write("group," + head);
  }
  print_trace(reader, {~std::uint64_t{0}, 0}, text, [&](const std::string& printed) {
    // The head comes with the first piece.
    std::string lines = printed;
    if (!head.empty()) lines.erase(0, head.size());
    head.clear();
    write(form == TextForm::text ? lines : with_group(lines, group, form));
  });
}

/// What is selected of a recording, as text: of traces of it that are made first.
ExitCode cat_selected(const CatArguments& arguments, ByteSink& out, const Console& console) {
  const Temporary folder(temporary_folder() + "/citcat", Temporary::Kind::folder);
  CatArguments selected;
  selected.file = folder.path() + "/selected.kt.zst";
  selected.format = arguments.format;
  selected.bits = arguments.bits;
  selected.processes = arguments.processes;
  const ExportResult exported =
      export_recording(arguments, kt_exporter(),
                       selected_kt(arguments.addresses, arguments.processes), selected.file, console);
  if (!exported.sure()) return code_of(exported);
  if (arguments.scope.by.empty()) {
    cat_records(selected, out);
    return ExitCode::ok;
  }
  bool first = true;
  for (const auto& [group, totals] : exported.totals.at("groups").items()) {
    print_group(tools::grouped_path(selected.file, group), group, first, arguments, out);
    first = false;
  }
  return ExitCode::ok;
}

ExitCode run_cat(const CatArguments& arguments, const Console& console) {
  arguments.range.instructions();
  if (arguments.addresses != "linear" && arguments.addresses != "offset") {
    throw UsageError("--addresses: expected linear or offset, found " + arguments.addresses);
  }
  check_bits(arguments.bits);
  const bool as_text = arguments.format == "text" || arguments.format == "json" || arguments.format == "csv";
  const tools::ExporterRow* const exporter =
      as_text ? nullptr : exporter_for(arguments.format, "");
  if (!arguments.scope.by.empty() && !as_text) {
    throw UsageError("--by: with --format text, json or csv; `replay -o FILE` writes a file for each group");
  }
  const FileKind kind = find_file_kind(arguments.file).kind;
  if (kind != FileKind::kt && kind != FileKind::recording) {
    throw FormatError(arguments.file, 0, "expected a recording or a KT trace, found neither");
  }
  // A reader that has seen enough is no failure.
  std::signal(SIGPIPE, SIG_IGN);
  StdoutSink out;
  try {
    if (exporter != nullptr && kind == FileKind::kt) {
      throw FormatError(arguments.file, 0, "expected a recording, found a KT trace: --format " +
                                               arguments.format + " needs a replay");
    }
    if (exporter != nullptr)
      return code_of(export_recording(arguments, *exporter, arguments.format, "-", console));
    if (arguments.scope.selects()) {
      if (kind == FileKind::kt) {
        throw FormatError(arguments.file, 0,
                          "expected a recording, found a KT trace: --where and --window need a replay");
      }
      if (as_text) return cat_selected(arguments, out, console);
      return code_of(export_recording(arguments, kt_exporter(),
                                      selected_kt(arguments.addresses, arguments.processes), "-",
                                      console));
    }
    if (kind == FileKind::recording && arguments.format == "kt")
      return cat_recording(arguments, out, console);
    cat_records(arguments, out);
  } catch (const ReaderGone&) {
  } catch (const TraceDiverged& diverged) {
    console.warn(diverged.what());
    return ExitCode::answer_is_no;
  }
  return ExitCode::ok;
}

CommandRun define_cat(CLI::App& app) {
  auto arguments = std::make_shared<CatArguments>();
  app.add_option("FILE", arguments->file, "Recording, or KT in any compression")->required();
  arguments->range.define(app);
  std::vector<std::string> formats{"kt", "text", "json", "csv"};
  // Of a recording, what others read.
  for (const tools::ExporterRow& row : tools::exporter_list()) {
    if (&row != &kt_exporter()) formats.emplace_back(row.tool->name);
  }
  define_text_form(app, arguments->format, formats);
  app.add_option("--addresses", arguments->addresses, "linear or offset (in the code segment)")
      ->type_name(type_of({"linear", "offset"}));
  app.add_option("--bits", arguments->bits,
                 "Disassemble as 16- or 32-bit code (default: what the trace tells, else a guess)")
      ->type_name(type_of({"16", "32"}));
  app.add_flag("--processes", arguments->processes,
               "PID and MMU records at the beginning and at changes of the address space");
  app.add_flag("--unchecked", arguments->unchecked, "Do not compare with the evidence on the way");
  app.add_flag("--from-start", arguments->from_start, "Use no checkpoint");
  arguments->scope.define(app);
  return [arguments](const Console& console) { return run_cat(*arguments, console); };
}

}  // namespace

extern const Command kCatCommand{"cat",
                                 "Write a trace to the standard output, as if it were stored",
                                 "citcat cat boot.citcat --from 1000000 | xxd | head\n"
                                 "citcat cat boot.citcat --where 'level=3 & process=sh' --format text", define_cat};

}  // namespace citcat
