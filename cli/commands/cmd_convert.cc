// citcat convert: one capture format into another.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "capture/inspect/convert.h"
#include "cli/capture_arguments.h"
#include "cli/command.h"
#include "cli/staged_output.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

struct ConvertArguments {
  std::vector<std::string> captures;
  std::string output, target;
  CaptureArguments capture;
  bool json = false;
};

ExitCode run_convert(const ConvertArguments& arguments, const Console& console) {
  const CaptureOptions options = arguments.capture.options();
  require_own_output(arguments.output, arguments.json);
  std::unique_ptr<ByteSink> sink = open_plain_sink(arguments.output);
  Progress progress = console.progress("converting", "items");
  const ConvertResult result =
      convert_capture(arguments.captures, options, arguments.target, std::move(sink),
                      [&progress](std::uint64_t done) { progress.update(done); });
  for (const std::string& text : result.warnings) console.warn(text);
  if (arguments.json) {
    nlohmann::ordered_json json;
    json["from"] = result.from;
    json["to"] = arguments.target;
    json["written"] = result.written;
    json["left_out"] = result.left_out;
    json["warnings"] = result.warnings;
    console.print_json(json);
  } else {
    console.note(fmt::format("{} items written, {} left out; the capture is in format {}",
                             result.written, result.left_out, result.from));
  }
  return ExitCode::ok;
}

CommandRun define_convert(CLI::App& app) {
  auto arguments = std::make_shared<ConvertArguments>();
  app.add_option("CAPTURE", arguments->captures, "Capture files; .gz .xz .zst are read as they are")
      ->required();
  std::string targets;
  for (const ConvertTarget& target : convert_targets())
    targets += (targets.empty() ? "" : ", ") + std::string(target.id);
  app.add_option("--to", arguments->target, "Target format: " + targets)->required();
  app.add_option("-o,--output", arguments->output, "File to write, - for stdout")->required();
  arguments->capture.define(app);
  app.add_flag("--json", arguments->json, "Print one line of JSON");
  return [arguments](const Console& console) { return run_convert(*arguments, console); };
}

}  // namespace

extern const Command kConvertCommand{"convert", "Write a capture in another format",
                                     "citcat convert boot.sr --to byu -o boot.byu", define_convert};

}  // namespace citcat
