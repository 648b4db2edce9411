// citcat report: a page that shows a recording, or compares two.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/cache_report.h"
#include "cli/capture_arguments.h"
#include "cli/command.h"
#include "cli/commands/default_output.h"
#include "cli/comparison_arguments.h"
#include "cli/interrupt.h"
#include "cli/machine/processor_argument.h"
#include "cli/parsing/command_description.h"
#include "cli/parsing/replay_options.h"
#include "cli/report/report_page.h"
#include "cli/view/machine_check.h"
#include "cli/view/viewed_recording.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

struct ReportArguments {
  std::vector<std::string> recordings;
  std::string output;
  ReportOptions options;
  CaptureArguments capture;
  bool compare = false;
};

/// The machine of which all processors are shown, one beside the other.
std::optional<MachineFile> reported_machine(const ReportArguments& arguments) {
  if (arguments.compare || !std::filesystem::exists(arguments.recordings.front())) return {};
  return find_machine(arguments.recordings.front());
}

std::vector<std::string> reported_names(const ReportArguments& arguments,
                                        const std::optional<MachineFile>& machine) {
  return machine ? names_of_processors(machine->path()) : arguments.recordings;
}

ExitCode run_report(ReportArguments arguments, const Console& console) {
  const std::size_t wanted = arguments.compare ? 2 : 1;
  if (arguments.recordings.size() != wanted) {
    throw UsageError(arguments.compare ? "--compare: expected two recordings, or ranges of them"
                                       : "expected one recording; two with --compare");
  }
  if (arguments.output.empty()) {
    if (arguments.compare) throw UsageError("--compare needs -o, the file for the page");
    arguments.output =
        default_output(parse_reported_range(arguments.recordings.front()).recording, ".html");
    console.note("writes " + arguments.output);
  }
  if (arguments.capture.given() && arguments.options.capture.empty()) {
    throw UsageError("--format, --cpu and --channels are only for --capture");
  }
  arguments.options.capture_options = arguments.capture.options();
  std::vector<ReportedRecording> reported;
  const std::optional<MachineFile> machine = reported_machine(arguments);
  std::unique_ptr<MachineCheck> check;
  if (machine) check = std::make_unique<MachineCheck>(*machine, true, arguments.options.policy);
  bool sure = true;
  for (const std::string& operand : reported_names(arguments, machine)) {
    const ReportedRange what = parse_reported_range(operand);
    PlacedRecording placed = open_placed(what.recording, console);
    ReportedRun run = report_run(placed, what, arguments.options, check.get(), console);
    sure = sure && run.agrees;
    reported.push_back({std::move(placed), what, std::move(run)});
  }
  while (check != nullptr && check->look_further(kLookedAtOnce)) check_interrupt();
  sure = sure && (check == nullptr || check->clean());
  write_report(arguments.output, std::move(reported), arguments.compare, check.get(),
               arguments.options, console);
  return sure ? ExitCode::ok : ExitCode::answer_is_no;
}

CommandRun define_report(const CommandParser& parser) {
  auto arguments = std::make_shared<ReportArguments>();
  parser
      .add_option("RECORDING", arguments->recordings,
                  "Recording to show, or FILE:FROM-TO for a range of its instructions")
      .required();
  parser
      .add_option("-o,--output", arguments->output,
                  "File for the page (default: the name of the recording with .html, here)")
      .type_name(kFileType);
  parser.add_flag("--compare", arguments->compare, "Show two recordings, or ranges, side by side");
  define_symbols(parser, arguments->options.symbols);
  parser
      .add_option(
          "--capture", arguments->options.capture,
          "Capture of pins that the recording was made from, to show them around a divergence")
      .type_name(kFileType);
  arguments->capture.define(parser);
  parser
      .add_option("--explain-time", arguments->options.explain_seconds,
                  "Seconds to look for the causes of a divergence; 0: do not look")
      .show_default();
  parser
      .add_option("--repeat-time", arguments->options.repeat_seconds,
                  "Seconds that one repeated instruction may take: the page shows the run up to "
                  "one that takes longer; 0: no limit")
      .show_default();
  parser.add_flag(
      "--cache", arguments->options.cache,
      "Compare line fills and write-backs with a model of the cache that the recording declares");
  parser
      .add_option("--cache-model", arguments->options.cache_model,
                  "The same with the model of this name")
      .type_name(type_of(cache_names()));
  parser.add_option("--sample", arguments->options.sample,
                    "Make the figures of caches, translation buffers, branches, calls and accesses "
                    "from these parts of the run, such as 'every 1M for 10k, warm 10k'; none: from "
                    "the whole run (default: parts only of long runs)");
  parser.add_option(
      "--steps", arguments->options.steps,
      "Largest number of instructions for which the page holds every step (default: 1000000, in "
      "longer runs 20000 to 100000)");
  define_comparison(parser, arguments->options.policy);
  return [arguments](const Console& console) { return run_report(*arguments, console); };
}

}  // namespace

extern const Command kReportCommand{
    "report", "Show a recording as a page for a browser: whether it is right, and what happened",
    "citcat report boot.citcat -o report.html\n"
    "citcat report --compare boot.citcat:0-1000000 boot.citcat:1000000-2000000 -o report.html",
    define_report};

}  // namespace citcat
