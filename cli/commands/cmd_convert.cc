// citcat convert: one capture format into another; an IDtrace execution trace into KT.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "capture/import/sample_formats.h"
#include "capture/inspect/convert.h"
#include "cli/capture_arguments.h"
#include "cli/command.h"
#include "cli/commands/replay_signals.h"
#include "cli/file_kind.h"
#include "cli/idtrace/idtrace_arguments.h"
#include "cli/parsing/command_description.h"
#include "cli/staged_output.h"
#include "events/archive/recording_file.h"
#include "events/capture_time.h"
#include "formats/idtrace/idtrace_reader.h"
#include "formats/io/error.h"
#include "formats/io/once_input.h"
#include "formats/kt/kt.h"
#include "tools/idtrace/execution_reader.h"

namespace citcat {
namespace {

struct ConvertArguments {
  std::vector<std::string> captures;
  std::string output, target, from, until, recording;
  CaptureArguments capture;
  IdtraceArguments idtrace;
  bool json = false;
};

void report(const ConvertResult& result, const ConvertArguments& arguments,
            const Console& console) {
  for (const std::string& text : result.warnings) console.warn(text);
  if (!arguments.json) {
    return console.note(fmt::format("{} items written, {} left out; the capture is in format {}",
                                    result.written, result.left_out, result.from));
  }
  nlohmann::ordered_json json;
  json["from"] = result.from;
  json["to"] = arguments.target;
  json["written"] = result.written;
  json["left_out"] = result.left_out;
  json["warnings"] = result.warnings;
  console.print_json(json);
}

/// An execution trace of IDtrace's as KT.
ConvertResult convert_to_kt(const ConvertArguments& arguments, const Console& console) {
  if (arguments.captures.size() != 1) {
    throw UsageError(fmt::format("--to kt: expected one IDtrace execution trace, found {} files",
                                 arguments.captures.size()));
  }
  const std::string& path = arguments.captures.front();
  const FileKind kind = find_file_kind(path).kind;
  if (kind != FileKind::idtrace_trace) {
    throw FormatError(
        path, 0,
        "expected an IDtrace execution trace (.trc), found " + std::string(file_kind_name(kind)));
  }
  const IdtraceProgram program = arguments.idtrace.load(path, true);
  IdtraceReader trace(path);
  tools::IdtraceExecutionReader reader(trace, *program.blocks, *program.code);
  const std::unique_ptr<ByteSink> sink = open_trace_sink(arguments.output);
  KtWriter writer(*sink);
  Progress progress = console.progress("converting", "records");
  KtInstruction record;
  while (reader.next(record)) {
    writer.instruction(record);
    if (writer.instructions() % 65536 == 0) progress.update(writer.instructions());
  }
  writer.flush();
  sink->finish();
  ConvertResult result;
  result.from = "idtrace";
  result.written = writer.instructions();
  return result;
}

/// A number, or a time where `text` is one.
void parse_bound(const char* option, const std::string& text, std::uint64_t& number,
                 std::optional<double>& seconds) {
  if (text.empty()) return;
  seconds = parse_capture_time(text);
  if (seconds) return;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec == std::errc{} && result.ptr == text.data() + text.size()) return;
  throw UsageError(
      fmt::format("{}: expected a number or a time such as 1.5ms, found '{}'", option, text));
}

ConvertRange parse_range(const ConvertArguments& arguments) {
  ConvertRange range;
  parse_bound("--from", arguments.from, range.from, range.from_seconds);
  parse_bound("--until", arguments.until, range.to, range.to_seconds);
  const bool same_kind = range.from_seconds.has_value() == range.to_seconds.has_value();
  const bool ordered = range.from_seconds ? *range.from_seconds < range.to_seconds.value_or(1e300)
                                          : range.from < range.to;
  if (same_kind && !ordered) throw UsageError("--until must come after --from");
  return range;
}

/// Says when the recording was made of other files.
void check_capture(const ConvertArguments& arguments, const Console& console) {
  make_rereadable(arguments.captures.front());
  const RecordingFile file = RecordingFile::open(arguments.recording);
  const std::vector<Provenance::File>& files = file.recording().provenance.files;
  const std::string own = describe_file(arguments.captures.front()).xxh3;
  const bool known = files.empty() || std::any_of(files.begin(), files.end(),
                                                  [&](const auto& f) { return f.xxh3 == own; });
  if (known) return;
  console.warn(arguments.recording + " was not made from the bytes of " +
               arguments.captures.front() + ": its times may be those of another capture");
}

std::unique_ptr<ReplaySignals> open_signals(const ConvertArguments& arguments,
                                            const Console& console) {
  if (arguments.recording.empty()) return nullptr;
  if (arguments.target != "vcd") throw UsageError("--replay needs --to vcd");
  check_capture(arguments, console);
  return std::make_unique<ReplaySignals>(arguments.recording);
}

ExitCode run_convert(const ConvertArguments& arguments, const Console& console) {
  require_own_output(arguments.output, arguments.json);
  if (arguments.target == "kt") {
    report(convert_to_kt(arguments, console), arguments, console);
    return ExitCode::ok;
  }
  const CaptureOptions options = arguments.capture.options();
  ConvertOptions how;
  how.range = parse_range(arguments);
  const std::unique_ptr<ReplaySignals> signals = open_signals(arguments, console);
  how.extra = signals.get();
  std::unique_ptr<ByteSink> sink = open_plain_sink(arguments.output);
  Progress progress = console.progress("converting", "items");
  how.progress = [&progress](std::uint64_t done) { progress.update(done); };
  ConvertResult result =
      convert_capture(arguments.captures, options, arguments.target, std::move(sink), how);
  const bool diverged = signals && !signals->divergence().empty();
  if (diverged) result.warnings.push_back(signals->divergence());
  report(result, arguments, console);
  return diverged ? ExitCode::answer_is_no : ExitCode::ok;
}

CommandRun define_convert(const CommandParser& parser) {
  auto arguments = std::make_shared<ConvertArguments>();
  parser
      .add_option(
          "CAPTURE", arguments->captures,
          "Capture files, or an IDtrace execution trace, compressed or not (.gz .bz2 .xz .zst)")
      .required();
  std::vector<std::string> targets;
  for (const ConvertTarget& target : convert_targets()) targets.emplace_back(target.id);
  targets.emplace_back("kt");
  parser
      .add_option("--to", arguments->target, "The format to write; kt only from an execution trace")
      .required()
      .type_name(type_of(targets));
  parser.add_option("-o,--output", arguments->output, "File to write, - for stdout")
      .required()
      .type_name(kFileType);
  parser.add_option("--from", arguments->from,
                    "Where to begin: a transaction, or a sample if capture and output both have "
                    "pins, or a time such as 1.5ms");
  parser.add_option("--until", arguments->until,
                    "Where to stop, as --from: this one is not included");
  parser
      .add_option("--replay", arguments->recording,
                  "For vcd: the recording made from these pins, to show its replay beside them")
      .type_name(kFileType);
  arguments->capture.define(parser);
  arguments->idtrace.define(parser);
  parser.add_flag("--json", arguments->json, "Print one line of JSON");
  return [arguments](const Console& console) { return run_convert(*arguments, console); };
}

}  // namespace

extern const Command kConvertCommand{
    "convert", "Write a capture or trace in another format",
    "citcat convert boot.sr --to byu -o boot.byu\n"
    "citcat convert boot.sr --replay boot.citcat --to vcd -o boot.vcd\n"
    "citcat convert run.trc --to kt -o run.kt",
    define_convert};

}  // namespace citcat
