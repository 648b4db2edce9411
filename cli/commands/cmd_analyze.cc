// citcat analyze: analyses a recorded run with any number of tools in one pass; also the short
// names of some tools.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/analysis/analysis_output.h"
#include "cli/analysis/analysis_run.h"
#include "cli/analysis/metric_arguments.h"
#include "cli/analysis/scope_arguments.h"
#include "cli/command.h"
#include "cli/commands/isolation_arguments.h"
#include "cli/comparison_arguments.h"
#include "cli/divergence_report.h"
#include "cli/engine_argument.h"
#include "cli/idtrace/idtrace_count.h"
#include "cli/machine/each_processor.h"
#include "cli/machine/machine_analysis.h"
#include "cli/machine/processor_argument.h"
#include "cli/parsing/replay_options.h"
#include "cli/placed_recording.h"
#include "cli/range_arguments.h"
#include "cli/shares/shard.h"
#include "events/archive/container.h"
#include "events/capture_time.h"
#include "formats/io/atomic_file.h"
#include "formats/io/byte_writer.h"
#include "formats/io/error.h"
#include "tools/guest/recording_symbols.h"
#include "tools/host/analysis_part.h"
#include "tools/host/report_renderers.h"

namespace citcat {
namespace {

struct AnalyzeArguments {
  std::string recording;
  std::vector<std::string> tools;
  std::vector<std::string> options;  ///< of a short name's only tool
  AnalysisPlan plan;
  ScopeArguments scope;
  MetricArguments metrics;
  RangeArguments positions;
  ProcessorArgument processor;
  IsolationArguments isolation;
  std::string shard, output, sample;
  int jobs = 1;
  bool unchecked = false, from_start = false, list = false, explain = false, json = false,
       csv = false;

  AnalysisFormat format() const {
    if (json && csv) throw UsageError("--json and --csv exclude each other");
    return json ? AnalysisFormat::json : csv ? AnalysisFormat::csv : AnalysisFormat::text;
  }
};

constexpr std::string_view kHelp = ":help";

/// --tool NAME:help in place of a run. True where that was all.
bool describe_instead(const AnalyzeArguments& arguments, const Console& console) {
  if (arguments.list) {
    list_tools(arguments.json, console);
    return true;
  }
  bool described = false;
  for (const std::string& tool : arguments.tools) {
    if (!tool.ends_with(kHelp)) continue;
    const std::string name = tool.substr(0, tool.size() - kHelp.size());
    if (!describe_tool_of_all(name, console))
      describe_tool(name, arguments.isolation.limit(), console);
    described = true;
  }
  return described;
}

/// --explain: where code of the metrics goes, and what it costs, in place of a run.
void explain_metrics(const AnalyzeArguments& arguments, const Console& console) {
  if (!arguments.metrics.any()) throw UsageError("--explain needs --metric");
  const PlacedRecording placed = open_placed(arguments.recording, console);
  tools::Report report;
  arguments.metrics.explain(tools::known_symbols(placed.file, arguments.scope.symbols), report);
  switch (arguments.format()) {
    case AnalysisFormat::json:
      return console.print_json(tools::report_json(report));
    case AnalysisFormat::csv:
      return print_csv(report, "explain", console);
    case AnalysisFormat::text:
      return console.print(tools::report_text(report));
  }
}

/// Share K of N of an analysis, into a file that `merge` takes.
ExitCode run_share(const AnalyzeArguments& arguments, const RecordingFile& file,
                   const Console& console) {
  if (arguments.output.empty() || output_kind(arguments.output) != OutputKind::replaced) {
    throw UsageError("--shard needs -o with a file name, to which the share's number is added");
  }
  tools::Setup setup;
  setup.recording = &file.recording();
  setup.machine = tools::MachineFacts::of(file.recording());
  const Symbols symbols = tools::known_symbols(file, arguments.plan.symbols);
  const tools::GuestNames names(symbols);
  setup.names = &names;
  const std::string why = why_serial(arguments.plan, setup);
  if (!why.empty()) throw UsageError("--shard: " + why);
  const Shard shard = parse_shard(arguments.shard);
  AnalysisPlan plan = arguments.plan;
  plan.range = shard_range(file, arguments.plan.range, shard);
  const AnalysisResult result =
      run_analysis(file, plan, plan.range.from == arguments.plan.range.from, console);
  if (result.report.divergence) {
    for (const std::string& line :
         divergence_lines(*result.report.divergence, clock_rate(file.recording().provenance)))
      console.warn(line);
    return ExitCode::answer_is_no;
  }
  tools::AnalysisPart part;
  part.recording = file.container().content_hash().hex();
  part.identity = replay_identity();
  part.tools = plan.tools;
  part.where = plan.where;
  part.by = plan.by;
  part.window = plan.window;
  part.number = shard.number;
  part.count = shard.count;
  part.whole_from = arguments.plan.range.from;
  part.whole_to = arguments.plan.range.to;
  part.from = plan.range.from;
  part.to = result.report.instructions;
  part.stopped = result.report.end == ReplayReport::End::stopped;
  part.machine = setup.machine;
  ByteWriter state;
  result.analysis->save(state);
  part.state = state.take();
  tools::write_analysis_part(shard_path(arguments.output, shard), part);
  return told_of_failures(*result.analysis, console) ? ExitCode::system : ExitCode::ok;
}

/// Analyses the run of one processor.
ExitCode analyze_one(AnalyzeArguments arguments, const Console& console) {
  const AnalysisFormat format = arguments.format();
  if (arguments.positions.within_repeat()) {
    throw UsageError("--from and --to must not lie within a REP");
  }
  if (arguments.shard.empty() && !arguments.output.empty()) {
    throw UsageError("-o: only with --shard; results go to the standard output");
  }
  AnalysisPlan& plan = arguments.plan;
  if (arguments.explain) {
    explain_metrics(arguments, console);
    return ExitCode::ok;
  }
  plan.tools = arguments.tools;
  for (std::string& metrics : arguments.metrics.tools()) plan.tools.push_back(std::move(metrics));
  arguments.scope.apply_to(plan);
  plan.isolate = arguments.isolation.limit();
  plan.range = arguments.positions.instructions();
  plan.check = !arguments.unchecked;
  plan.use_checkpoints = !arguments.from_start;
  plan.sample = arguments.sample;
  const bool selects = !plan.where.empty() || !plan.by.empty() || !plan.window.empty();
  if (!plan.sample.empty() && selects) {
    throw UsageError("--sample excludes --where, --by and --window");
  }
  make_analysis(plan, {});  // what is wrong with it is said before the recording is read
  const PlacedRecording placed = open_placed(arguments.recording, console);
  if (!arguments.shard.empty()) return run_share(arguments, placed.file, console);
  const AnalysisResult result =
      arguments.jobs > 1
          ? run_parallel_analysis(placed.file, plan, static_cast<unsigned>(arguments.jobs), console)
          : run_analysis(placed.file, plan, true, console);
  const ReplayReport& report = result.report;
  if (!report.divergence && report.instructions <= plan.range.from && plan.range.from != 0) {
    arguments.positions.require_reached(arguments.recording, report.instructions);
  }
  if (result.analysis) {
    print_analysis(*result.analysis, plan.range.from, std::min(report.instructions, plan.range.to),
                   report, result.sample, format, console);
  }
  if (report.divergence) {
    for (const std::string& line :
         divergence_lines(*report.divergence, clock_rate(placed.file.recording().provenance)))
      console.warn(line);
  }
  if (result.differs_before) {
    console.warn(fmt::format(
        "the replay is not the one that was verified: it went another way before instruction {}",
        *result.differs_before));
  }
  if (result.analysis && told_of_failures(*result.analysis, console)) return ExitCode::system;
  return result.sure() ? ExitCode::ok : ExitCode::answer_is_no;
}

/// `--by processor` of one alone would be a group of everything.
void take_processor_off(AnalyzeArguments& arguments, bool several) {
  std::string& by = arguments.scope.by;
  constexpr std::string_view kName = "processor";
  std::string others;
  bool named = false;
  for (std::size_t at = 0; at <= by.size();) {
    const std::size_t end = std::min(by.find(',', at), by.size());
    const std::string part = by.substr(at, end - at);
    if (part == kName) {
      named = true;
    } else {
      others += (others.empty() ? "" : ",") + part;
    }
    at = end + 1;
  }
  if (!named) return;
  if (!several) {
    throw UsageError(
        "--by processor needs a recording of several processors, and excludes --processor");
  }
  by = others;
}

/// Each of several processors.
ExitCode analyze_each(const MachineFile& machine, AnalyzeArguments arguments,
                      const Console& console) {
  if (!arguments.positions.from.empty() || !arguments.positions.to.empty())
    throw UsageError("--from and --to: name the processor, too, as in P:N");
  if (!arguments.shard.empty())
    throw UsageError("--shard needs --processor P, because the recording has several");
  if (arguments.format() == AnalysisFormat::csv)
    throw UsageError("--csv needs --processor P, because the recording has several");
  const auto jobs = static_cast<unsigned>(arguments.jobs);
  arguments.jobs = jobs_of_each(arguments.jobs, machine);
  return for_each_processor(machine, console, arguments.json, jobs,
                            [&](std::size_t, const std::string& name, const Console& its) {
                              arguments.recording = name;
                              return analyze_one(arguments, its);
                            });
}

ExitCode run_analyze(AnalyzeArguments arguments, const Console& console) {
  const AnalysisFormat format = arguments.format();
  if (describe_instead(arguments, console)) return ExitCode::ok;
  if (arguments.recording.empty()) throw UsageError("RECORDING is required (see --help)");
  arguments.processor.take_from(arguments.positions);
  arguments.recording = arguments.processor.name(arguments.recording);
  if (asks_of_all_processors(arguments.tools)) {
    if (arguments.scope.selects() || arguments.metrics.any() || !arguments.shard.empty() ||
        !arguments.positions.from.empty() || !arguments.positions.to.empty() ||
        !arguments.sample.empty()) {
      throw UsageError("--tool " + arguments.tools.front() +
                       " follows the whole run of all processors: --where, --window, --by, --from, "
                       "--to, --metric and --shard exclude it");
    }
    MachineAnalysisArguments all{arguments.recording, arguments.tools, arguments.scope.symbols,
                                 std::nullopt, format};
    if (!arguments.unchecked) all.policy = arguments.plan.policy;
    return analyze_processors(all, console);
  }
  const std::optional<MachineFile> machine = find_machine(arguments.recording);
  take_processor_off(arguments, machine.has_value());
  return machine ? analyze_each(*machine, std::move(arguments), console)
                 : analyze_one(std::move(arguments), console);
}

void define_common(const CommandParser& parser, AnalyzeArguments& arguments) {
  arguments.scope.define(parser);
  arguments.positions.define(parser);
  arguments.processor.define(parser);
  parser
      .add_option("--jobs", arguments.jobs,
                  "Number of processes that replay parts of the run, each from a checkpoint")
      .in_range(1, 1024);
  parser.add_option(
      "--shard", arguments.shard,
      "Do only share K of N, which `merge` joins: K/N, or auto, which asks the batch system");
  parser.add_option("-o,--output", arguments.output, "File for the share (with --shard)");
  define_comparison(parser, arguments.plan.policy);
  define_unchecked(parser, arguments.unchecked);
  define_from_start(parser, arguments.from_start);
  parser.add_option("--sample", arguments.sample,
                    "Give tools that need every instruction in order only these samples of the "
                    "run, such as 'every 1M for 10k, warm 10k'; other tools see the whole run");
  define_engine(parser, arguments.plan.path);
  parser.add_flag("--json", arguments.json, "Print one line of JSON");
  parser.add_flag("--csv", arguments.csv, "Print tables of comma-separated values");
}

CommandRun define_analyze(const CommandParser& parser) {
  auto arguments = std::make_shared<AnalyzeArguments>();
  parser.add_option("RECORDING", arguments->recording, "Recording to read");
  parser
      .add_option("--tool", arguments->tools,
                  "Tool to run: NAME, NAME:key=value,... or the file of a shared object; may be "
                  "repeated. NAME:help explains a tool")
      .repeated();
  arguments->isolation.define(parser);
  arguments->metrics.define(parser);
  parser.add_flag("--explain", arguments->explain,
                  "Only print where the code of the metrics goes, and what it costs");
  parser.add_flag("--list-tools", arguments->list, "Only list the tools");
  define_common(parser, *arguments);
  return [arguments](const Console& console) { return run_analyze(*arguments, console); };
}

/// A command that is short for `analyze --tool NAME`.
CommandRun define_short(const CommandParser& parser, const char* tool) {
  auto arguments = std::make_shared<AnalyzeArguments>();
  parser.add_option("RECORDING", arguments->recording, "Recording to read");
  parser.add_option(
      "OPTIONS", arguments->options,
      fmt::format("Options of the tool, as key=value; see `citcat analyze --tool {}:help`", tool));
  define_common(parser, *arguments);
  return [arguments, tool](const Console& console) {
    std::string request = tool;
    for (const std::string& option : arguments->options) {
      request += (request == tool ? ":" : ",") + option;
    }
    arguments->tools = {request};
    return run_analyze(*arguments, console);
  };
}

/// `count` is IDtrace's vcount too, where it is given one of its files.
CommandRun define_count(const CommandParser& parser) {
  CommandRun analyze = define_short(parser, "count");
  auto idtrace = std::make_shared<IdtraceCount>();
  idtrace->define(parser);
  const ParserOption file = parser.option("RECORDING");
  const ParserOption json = parser.option("--json");
  return [analyze, idtrace, file, json](const Console& console) {
    const std::string path = file.count() != 0 ? file.text() : "";
    if (path.empty() || !IdtraceCount::takes(path)) return analyze(console);
    idtrace->print(path, json.count() != 0, console);
    return ExitCode::ok;
  };
}

}  // namespace

extern const Command kAnalyzeCommand{
    "analyze",
    "Analyse the run: count, predict, model caches, with any number of tools in one pass",
    "citcat analyze boot.citcat --tool count --tool bpred:entries=1024 --tool cache:model=i486\n"
    "citcat analyze boot.citcat --tool count --where 'level=3 & !interrupt' --by process --json\n"
    "citcat analyze boot.citcat --isolate --tool ./mine.so:limit=10 --tool count\n"
    "citcat analyze boot.citcat --metric cpu@/Process/sh --metric 'systemCalls@/Syscall/*'\n"
    "citcat analyze boot.citcat --mdl my.mdl --metric msgs@/Code/vmlinux/schedule --explain\n"
    "citcat analyze --list-tools",
    define_analyze};

extern const Command kCountCommand{"count", "Count instructions: analyze --tool count",
                                   "citcat count boot.citcat --where level=3 --json\n"
                                   "citcat count run.cnt --blocks run.blk --top 5",
                                   define_count};

extern const Command kBpredCommand{
    "bpred", "Predict branches: analyze --tool bpred",
    "citcat bpred boot.citcat entries=256 --json",
    [](const CommandParser& parser) { return define_short(parser, "bpred"); }};

extern const Command kCacheCommand{
    "cache", "Model a cache: analyze --tool cache", "citcat cache boot.citcat model=i486 --json",
    [](const CommandParser& parser) { return define_short(parser, "cache"); }};

}  // namespace citcat
