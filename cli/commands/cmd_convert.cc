// citcat convert: one capture format into another; an execution trace of IDtrace's into KT.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "capture/inspect/convert.h"
#include "cli/capture_arguments.h"
#include "cli/command.h"
#include "cli/file_kind.h"
#include "cli/idtrace/idtrace_arguments.h"
#include "cli/staged_output.h"
#include "formats/idtrace/idtrace_reader.h"
#include "formats/io/error.h"
#include "formats/kt/kt.h"
#include "tools/idtrace/execution_reader.h"

namespace citcat {
namespace {

struct ConvertArguments {
  std::vector<std::string> captures;
  std::string output, target;
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
    throw UsageError(fmt::format("--to kt: expected one execution trace of IDtrace's, found {} files",
                                 arguments.captures.size()));
  }
  const std::string& path = arguments.captures.front();
  const FileKind kind = find_file_kind(path).kind;
  if (kind != FileKind::idtrace_trace) {
    throw FormatError(path, 0, "expected an execution trace of IDtrace's (.trc), found " +
                                   std::string(file_kind_name(kind)));
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

ExitCode run_convert(const ConvertArguments& arguments, const Console& console) {
  require_own_output(arguments.output, arguments.json);
  if (arguments.target == "kt") {
    report(convert_to_kt(arguments, console), arguments, console);
    return ExitCode::ok;
  }
  const CaptureOptions options = arguments.capture.options();
  std::unique_ptr<ByteSink> sink;
  if (arguments.output == "-") {
    sink = std::make_unique<StdoutSink>();
  } else {
    sink = std::make_unique<FileSink>(arguments.output);
  }
  Progress progress = console.progress("converting", "items");
  const ConvertResult result =
      convert_capture(arguments.captures, options, arguments.target, std::move(sink),
                      [&progress](std::uint64_t done) { progress.update(done); });
  report(result, arguments, console);
  return ExitCode::ok;
}

CommandRun define_convert(CLI::App& app) {
  auto arguments = std::make_shared<ConvertArguments>();
  app.add_option("CAPTURE", arguments->captures, "Capture files, or an IDtrace execution trace; .gz .xz .zst are read as they are")
      ->required();
  std::string targets;
  for (const ConvertTarget& target : convert_targets())
    targets += std::string(target.id) + ", ";
  targets += "kt (of an execution trace)";
  app.add_option("--to", arguments->target, "Target format: " + targets)->required();
  app.add_option("-o,--output", arguments->output, "File to write, - for stdout")->required();
  arguments->capture.define(app);
  arguments->idtrace.define(app);
  app.add_flag("--json", arguments->json, "Print one line of JSON");
  return [arguments](const Console& console) { return run_convert(*arguments, console); };
}

}  // namespace

extern const Command kConvertCommand{"convert", "Write a capture or trace in another format",
                                     "citcat convert boot.sr --to byu -o boot.byu\n"
                                     "citcat convert run.trc --to kt -o run.kt", define_convert};

}  // namespace citcat
