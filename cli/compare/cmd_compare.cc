// citcat compare: where a recorded run and an emulator's log begin to differ.

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/compare/compared_recording.h"
#include "cli/compare/difference_output.h"
#include "cli/parsing/command_description.h"
#include "cli/parsing/replay_options.h"
#include "formats/io/error.h"
#include "formats/text/one_line.h"
#include "sql/compare/log_difference.h"

namespace citcat {
namespace {

struct CompareArguments {
  std::string recording, log, format;
  std::uint64_t from = 0;
  std::optional<std::uint64_t> log_processor;
  bool unchecked = false, json = false;
};

ExitCode run_compare(const CompareArguments& arguments, const Console& console) {
  ComparedRecording recording(arguments.recording, !arguments.unchecked, console);
  EmulatorLog log(arguments.log, arguments.format, arguments.log_processor);
  const sql::LogDifference found = sql::difference_of(recording.source(), arguments.from, log);
  if (!found.began) {
    throw UsageError(fmt::format(
        "{}: no entry has the address of the first instruction that is compared, {}: see --from",
        arguments.log, found.run ? fmt::format("{:08x}", found.run->address.value) : "none"));
  }
  if (arguments.json) {
    nlohmann::ordered_json json;
    json["verdict"] = found.differs ? "differ" : "equal";
    json["position"] = found.differs ? nlohmann::ordered_json(found.run->position) : nullptr;
    json["a"] = compared_json(found.run);
    json["b"] = nullptr;
    if (found.log) {
      json["b"] = {{"line", found.log->line},
                   {"address", fmt::format("{:08x}", found.log->at)},
                   {"text", found.log->text}};
    }
    json["compared"] = found.compared;
    json["format"] = log.form().name;
    console.print_json(json);
  } else {
    console.print_verdict(!found.differs, found.differs ? "differ" : "equal",
                          fmt::format(": {} entries are the same", found.compared));
    if (found.differs) {
      console.print_line("  recording " + compared_text(found.run));
      console.print_line(
          fmt::format("  log       line {}: {}", found.log->line, one_line(found.log->text)));
      if (const char* const whole = log.form().whole_with) {
        console.print_line(fmt::format("such a log is complete only with {}", whole));
      }
    }
  }
  const bool unsure = recording.warn(console);
  return found.differs || unsure ? ExitCode::answer_is_no : ExitCode::ok;
}

CommandRun define_compare(const CommandParser& parser) {
  auto arguments = std::make_shared<CompareArguments>();
  parser.add_option("RECORDING", arguments->recording, "Recording").required();
  parser
      .add_option("LOG", arguments->log,
                  "Log of an emulator, compressed or not (.gz .bz2 .xz .zst)")
      .required();
  std::vector<std::string> names;
  for (const LogForm& form : log_forms()) names.emplace_back(form.name);
  parser.add_option("--format", arguments->format, "Format of the log (default: by content)")
      .one_of(names);
  parser.add_option("--log-processor", arguments->log_processor,
                    "Processor whose entries to compare, in a log of several");
  parser.add_option("--from", arguments->from, "First instruction of the recording to compare");
  define_unchecked(parser, arguments->unchecked);
  parser.add_flag("--json", arguments->json, "Print one line of JSON");
  return [arguments](const Console& console) { return run_compare(*arguments, console); };
}

}  // namespace

extern const Command kCompareCommand{
    "compare", "Say where a recorded run and an emulator's log begin to differ",
    "citcat compare boot.citcat qemu.log --format qemu-exec", define_compare};

}  // namespace citcat
