// citcat cat: a trace to the standard output, as if it were stored.

#include <fmt/format.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>

#include "cli/analysis/analysis_output.h"
#include "cli/analysis/scope_arguments.h"
#include "cli/command.h"
#include "cli/file_kind.h"
#include "cli/kt_text.h"
#include "cli/machine/processor_argument.h"
#include "cli/parsing/command_description.h"
#include "cli/parsing/replay_options.h"
#include "cli/placed_recording.h"
#include "cli/range_arguments.h"
#include "cli/select/export_run.h"
#include "cli/select/selected_run.h"
#include "cli/trace_run.h"
#include "formats/io/byte_sink.h"
#include "formats/io/error.h"
#include "formats/kt/kt.h"
#include "replay/trace/kt_sink.h"
#include "replay/trace/trace_reader.h"

namespace citcat {
namespace {

struct CatArguments {
  std::string file, format = "kt", addresses = "linear";
  RangeArguments range;
  int bits = 0;
  bool processes = false, unchecked = false, from_start = false, clocks = false;
  ScopeArguments scope;
  ProcessorArgument processor;
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
  KtWriter writer(out, kt_form(file.recording().initial.model));
  KtSink trace(writer, kt);
  TraceRunOptions options;
  options.recording = arguments.file;
  options.remember = !placed.search;
  options.range = arguments.range.instructions();
  options.within = arguments.range.end_within();
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

SelectedRun selected_run(const CatArguments& arguments) {
  SelectedRun run;
  run.recording = arguments.file;
  arguments.scope.apply_to(run.plan);
  run.range = arguments.range;
  run.addresses = arguments.addresses;
  run.processes = arguments.processes;
  run.plan.check = !arguments.unchecked;
  run.plan.use_checkpoints = !arguments.from_start;
  return run;
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
      writer.translation(record.frame, record.wide_page());
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
  options.wide = true;
  options.clocks = arguments.clocks;
  TraceReader reader(arguments.file, options);
  if (arguments.range.first() != Position{}) reader.seek(arguments.range.first());
  if (!as_kt) {
    TraceText text(parse_form(arguments.format), arguments.bits);
    if (arguments.clocks) text.show_clocks(reader.clock_hz());
    const bool found = print_trace(reader, to, text, [&](const std::string& lines) {
      out.write({reinterpret_cast<const std::uint8_t*>(lines.data()), lines.size()});
    });
    if (!found) arguments.range.require_reached(arguments.file, reader.instructions());
    return;
  }
  std::optional<KtWriter> writer;
  TraceRecord record;
  bool ended = false, any = false;
  while (!(ended = !reader.next(record)) && record.position < to) {
    any = true;
    if (!writer) writer.emplace(out, reader.is_wide() ? KtForm::wide : KtForm::narrow);
    write_record(record.record, *writer);
  }
  if (writer) writer->flush();
  if (ended && !any) arguments.range.require_reached(arguments.file, reader.instructions());
}

/// The exporter of a format that is no text; null for kt.
const tools::ExporterRow* exporter_of(const std::string& format) {
  if (format != "kt" && tools::find_exporter(format_name(format)) == nullptr) {
    throw UsageError("--format: expected text, json, csv, kt, " + exporter_names() + ", found " +
                     format_name(format));
  }
  return exporter_for(format, "");
}

ExitCode run_cat(CatArguments arguments, const Console& console) {
  arguments.processor.take_from(arguments.range);
  arguments.file = arguments.processor.name(arguments.file);
  arguments.range.instructions();
  if (arguments.addresses != "linear" && arguments.addresses != "offset") {
    throw UsageError("--addresses: expected linear or offset, found " + arguments.addresses);
  }
  check_bits(arguments.bits);
  if (asks_for_help(arguments.format)) {
    describe_tool(format_name(arguments.format), std::nullopt, console);
    return ExitCode::ok;
  }
  const bool as_text =
      arguments.format == "text" || arguments.format == "json" || arguments.format == "csv";
  const tools::ExporterRow* const exporter = as_text ? nullptr : exporter_of(arguments.format);
  if (!arguments.scope.by.empty() && !as_text) {
    throw UsageError(
        "--by needs --format text, json or csv; `replay -o FILE` writes a file for each group");
  }
  if (arguments.clocks && (!as_text || arguments.scope.selects() || arguments.unchecked)) {
    throw UsageError(
        "--clock needs --format text, json or csv, and excludes --where, --by, --window and "
        "--unchecked");
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
      throw FormatError(arguments.file, 0,
                        "expected a recording, found a KT trace: --format " + arguments.format +
                            " needs a replay");
    }
    if (exporter != nullptr)
      return export_selected(selected_run(arguments), *exporter, arguments.format, "-", console)
          .exit_code();
    if (arguments.scope.selects()) {
      if (kind == FileKind::kt) {
        throw FormatError(
            arguments.file, 0,
            "expected a recording, found a KT trace: --where and --window need a replay");
      }
      const SelectedRun run = selected_run(arguments);
      if (as_text) {
        return print_selected(
            run, parse_form(arguments.format), arguments.bits,
            [&out](const std::string& text) {
              out.write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
            },
            console);
      }
      return export_selected(run, kt_exporter(), selected_kt(run.addresses, run.processes), "-",
                             console)
          .exit_code();
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

CommandRun define_cat(const CommandParser& parser) {
  auto arguments = std::make_shared<CatArguments>();
  parser.add_option("FILE", arguments->file, "Recording, or KT trace, compressed or not")
      .required();
  arguments->range.define(parser);
  arguments->processor.define(parser);
  std::vector<std::string> formats{"kt", "text", "json", "csv"};
  // For a recording, also the formats of other programs.
  for (const tools::ExporterRow& row : tools::exporter_list()) {
    if (&row != &kt_exporter()) formats.emplace_back(row.tool->name);
  }
  define_text_form(parser, arguments->format, formats);
  parser
      .add_option("--addresses", arguments->addresses,
                  "Addresses of instructions: linear, or offset in the code segment")
      .type_name(type_of({"linear", "offset"}));
  parser
      .add_option("--bits", arguments->bits,
                  "Disassemble as 16- or 32-bit code (default: as the trace says, or else a guess)")
      .type_name(type_of({"16", "32"}));
  parser.add_flag(
      "--processes", arguments->processes,
      "Write PID and MMU records at the beginning and at each change of the address space");
  parser.add_flag("--clock", arguments->clocks,
                  "Print when the bus showed each record, in clocks and seconds (a recording as "
                  "text, json or csv)");
  define_unchecked(parser, arguments->unchecked);
  define_from_start(parser, arguments->from_start);
  arguments->scope.define(parser);
  return [arguments](const Console& console) { return run_cat(*arguments, console); };
}

}  // namespace

extern const Command kCatCommand{
    "cat", "Write the trace of a recording, or a stored trace, to the standard output",
    "citcat cat boot.citcat --from 1000000 | xxd | head\n"
    "citcat cat boot.citcat --where 'level=3 & process=sh' --format text",
    define_cat};

}  // namespace citcat
