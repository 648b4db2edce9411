// citcat report: a page that shows a recording, or compares two.

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/cache_report.h"
#include "cli/capture_arguments.h"
#include "cli/command.h"
#include "cli/commands/default_output.h"
#include "cli/comparison_arguments.h"
#include "cli/machine/processor_argument.h"
#include "cli/parsing/command_description.h"
#include "cli/parsing/replay_options.h"
#include "cli/report/report_data.h"
#include "formats/io/atomic_file.h"
#include "formats/io/error.h"
#include "tools/report/page.h"

namespace citcat {
namespace {

struct ReportArguments {
  std::vector<std::string> recordings;
  std::string output;
  ReportOptions options;
  CaptureArguments capture;
  bool compare = false;
};

void write_text(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  file.commit();
}

/// What is shown: of several processors each, one beside the other.
std::vector<std::string> reported_names(const ReportArguments& arguments) {
  if (arguments.compare || !std::filesystem::exists(arguments.recordings.front()))
    return arguments.recordings;
  return names_of_processors(arguments.recordings.front());
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
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  bool sure = true;
  std::string title;
  for (const std::string& operand : reported_names(arguments)) {
    ReportedRun run = report_run(parse_reported_range(operand), arguments.options, console);
    sure = sure && run.sure;
    title += (title.empty() ? "" : " and ") + run.data.at("name").get<std::string>();
    runs.push_back(std::move(run.data));
  }
  const nlohmann::ordered_json data = {{"version", CITCAT_VERSION}, {"runs", std::move(runs)}};
  write_text(arguments.output, tools::make_page(title, data));
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
                  "one that takes longer; 0: any time")
      .show_default();
  parser.add_flag(
      "--cache", arguments->options.cache,
      "Compare line fills and write-backs with a model of the cache that the recording declares");
  parser
      .add_option("--cache-model", arguments->options.cache_model,
                  "The same with the model of this name")
      .type_name(type_of(cache_names()));
  parser.add_option("--sample", arguments->options.sample,
                    "Parts of the run that figures of caches, translation buffers, branches, calls "
                    "and accesses are made from, such as 'every 1M for 10k, warm 10k'; none: the "
                    "whole run (default: parts only of long runs)");
  define_comparison(parser, arguments->options.policy);
  return [arguments](const Console& console) { return run_report(*arguments, console); };
}

}  // namespace

extern const Command kReportCommand{
    "report", "Show a recording as a page for a browser: is it right, and what happened in it",
    "citcat report boot.citcat -o report.html\n"
    "citcat report --compare boot.citcat:0-1000000 boot.citcat:1000000-2000000 -o report.html",
    define_report};

}  // namespace citcat
