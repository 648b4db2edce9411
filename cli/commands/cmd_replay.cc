// citcat replay: recomputes the run and writes its trace.

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/analysis/analysis_output.h"
#include "cli/analysis/scope_arguments.h"
#include "cli/command.h"
#include "cli/comparison_arguments.h"
#include "cli/divergence_report.h"
#include "cli/engine_argument.h"
#include "cli/machine/each_processor.h"
#include "cli/machine/processor_argument.h"
#include "cli/parsing/command_description.h"
#include "cli/parsing/replay_options.h"
#include "cli/placed_recording.h"
#include "cli/range_arguments.h"
#include "cli/replay_stats.h"
#include "cli/select/export_run.h"
#include "cli/shares/parallel_trace.h"
#include "cli/shares/shard.h"
#include "cli/staged_output.h"
#include "cli/stream_start.h"
#include "cli/trace_run.h"
#include "events/archive/container.h"
#include "formats/io/byte_sink.h"
#include "formats/io/error.h"
#include "formats/io/input.h"
#include "formats/io/json_text.h"
#include "formats/kt/kt.h"
#include "replay/trace/kt_sink.h"

namespace citcat {
namespace {

struct ReplayArguments {
  std::string recording, output, hints;
  std::string addresses = "linear", shard, format;
  ScopeArguments scope;
  RangeArguments positions;
  ReplayRange range;  ///< of these, and of the share
  int jobs = 1;
  bool processes = false, unchecked = false;
  bool from_start = false, stats = false, json = false;
  ComparisonPolicy comparison;
  ExecutionPath path = ExecutionPath::blocks;
  ProcessorArgument processor;
};

KtOptions kt_options(const ReplayArguments& arguments) {
  KtOptions options;
  if (arguments.addresses != "linear" && arguments.addresses != "offset") {
    throw UsageError("--addresses: expected linear or offset, found " + arguments.addresses);
  }
  options.from = arguments.range.from;
  options.to = arguments.range.to;
  if (arguments.shard.empty()) {
    const Position end = arguments.positions.end();
    options.from_iteration = arguments.positions.first().iteration;
    options.to = end.instruction;
    options.to_iteration = end.iteration;
  }
  options.offsets = arguments.addresses == "offset";
  options.process_records = arguments.processes;
  return options;
}

/// Instructions a second, in millions.
double speed(const TraceRunResult& result, double seconds) {
  const std::uint64_t replayed = result.report.instructions - result.started_at;
  return seconds > 0 ? static_cast<double>(replayed) / seconds / 1e6 : 0.0;
}

/// "0.3 million/s", or "4 thousand/s" of a short run.
std::string speed_text(const TraceRunResult& result, double seconds) {
  const double millions = speed(result, seconds);
  return millions < 0.1 ? fmt::format("{:.0f} thousand/s", millions * 1e3)
                        : fmt::format("{:.1f} million/s", millions);
}

/// Seconds since `start`.
double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void print_json(const TraceRunResult& result, double seconds,
                const std::optional<ReplayStats>& stats, const Console& console) {
  const ReplayReport& report = result.report;
  nlohmann::ordered_json json;
  json["instructions"] = report.instructions;
  json["started_at"] = result.started_at;
  json["seconds"] = seconds;
  json["mips"] = speed(result, seconds);
  json["interrupts"] = report.interrupts;
  json["exceptions"] = report.exceptions;
  json["io_reads"] = report.io_reads;
  json["external_writes"] = report.external_writes;
  json["end"] = replay_end_name(report.end);
  json["divergence"] = divergence_json(report.divergence, result.clock_hz);
  if (stats) json["stats"] = stats_json(*stats);
  console.print_json(json);
}

void print_text(const TraceRunResult& result, double seconds, const Console& console) {
  const ReplayReport& report = result.report;
  if (result.started_at != 0) {
    console.print(fmt::format("from the checkpoint at instruction {}\n", result.started_at));
  }
  console.print(fmt::format(
      "{}: {} instructions in {:.2f} s ({})\n"
      "  interrupts       {}\n  exceptions       {}\n  I/O reads        {}\n"
      "  external writes  {}\n",
      replay_end_name(report.end), report.instructions, seconds, speed_text(result, seconds),
      report.interrupts, report.exceptions, report.io_reads, report.external_writes));
}

/// True when this share of the trace is there already, made of the same recording with the same
/// options: making it again would give the same.
bool is_made(const ShardDescription& wanted, const std::string& path) {
  try {
    const ShardDescription found = read_description(path + ".json");
    if (!found.same_trace(wanted) || found.shard.number != wanted.shard.number) return false;
    NullSink nowhere;
    HashingSink hashing(nowhere);
    InputStream in(path);
    for (auto b = in.next_block(); !b.empty(); b = in.next_block()) hashing.write(b);
    return hashing.bytes() == found.bytes && hashing.hash() == found.xxh3;
  } catch (const Error&) {
    return false;
  }
}

ShardDescription describe_shard(const ReplayArguments& arguments, const RecordingFile& file) {
  ShardDescription d;
  d.shard = parse_shard(arguments.shard);
  d.whole = arguments.range;
  d.range = shard_range(file, d.whole, d.shard);
  d.recording = file.container().content_hash().hex();
  d.options = fmt::format("addresses={} processes={} {}", arguments.addresses, arguments.processes,
                          replay_identity());
  return d;
}

/// The trace on its way to a file.
struct TraceOutput {
  TraceOutput(const std::string& path, const KtOptions& kt, KtForm form, bool hashed)
      : out(open_trace_sink(path)),
        hashing(*out),
        writer(hashed ? hashing : *out, form, kt.begins_trace),
        trace(writer, kt) {}

  std::unique_ptr<ByteSink> out;
  HashingSink hashing;
  KtWriter writer;
  KtSink trace;
};

void print_result(const TraceRunResult& result, double opening, double seconds,
                  const ReplayArguments& arguments, const Console& console);

/// Writes a format of others instead of KT.
ExitCode replay_to_exporter(const ReplayArguments& arguments, const RecordingFile& file,
                            const tools::ExporterRow& exporter, double opening,
                            const Console& console) {
  if (!arguments.shard.empty()) {
    throw UsageError(
        "--shard makes shares of KT only; for another format that can be joined from shares, use "
        "`analyze --shard --tool NAME:to=FILE`");
  }
  if (arguments.positions.within_repeat()) {
    throw UsageError("--from and --to must not lie within a REP");
  }
  ExportRequest request;
  request.exporter = &exporter;
  request.format = arguments.format;
  request.path = arguments.output;
  arguments.scope.apply_to(request.plan);
  request.plan.range = arguments.range;
  request.plan.check = !arguments.unchecked;
  request.plan.policy = arguments.comparison;
  request.plan.path = arguments.path;
  request.plan.use_checkpoints = !arguments.from_start;
  request.jobs = static_cast<unsigned>(arguments.jobs);
  const auto start = std::chrono::steady_clock::now();
  const ExportResult exported = run_export(file, std::move(request), console);
  TraceRunResult result;
  result.report = exported.report;
  result.differs_before = exported.differs_before;
  print_result(result, opening, seconds_since(start), arguments, console);
  if (!arguments.json && !is_standard_output(arguments.output)) {
    for (const auto& [key, value] : exported.totals.items()) {
      console.print(fmt::format("  {:<16} {}\n", key, json_text(value)));
    }
  }
  const auto records = exported.totals.find("records");
  if (records != exported.totals.end() && *records == 0 && *exporter.where != '\0') {
    console.warn(
        fmt::format("{}: no records, because the run has nothing of what {} is made from "
                    "(--where {})",
                    arguments.output, exporter.tool->name, exporter.where));
  }
  result.warn(console);
  return result.sure() ? ExitCode::ok : ExitCode::answer_is_no;
}

/// Makes the range and the output those of the share that `arguments` ask for.
ShardDescription narrow_to_shard(ReplayArguments& arguments, const RecordingFile& file) {
  if (arguments.output.empty() || output_kind(arguments.output) != OutputKind::replaced) {
    throw UsageError("--shard needs -o with a file name, to which the share's number is added");
  }
  ShardDescription shard = describe_shard(arguments, file);
  arguments.range = shard.range;
  arguments.output = shard_path(arguments.output, shard.shard);
  return shard;
}

/// The trace is whole: it gets the name asked for, and a share its description.
void keep_trace(TraceOutput& output, std::optional<ShardDescription>& shard,
                const std::string& path) {
  output.out->finish();
  if (!shard) return;
  shard->bytes = output.hashing.bytes();
  shard->xxh3 = output.hashing.hash();
  write_description(path + ".json", *shard);
}

/// Results in the form asked for.
void print_result(const TraceRunResult& result, double opening, double seconds,
                  const ReplayArguments& arguments, const Console& console) {
  std::optional<ReplayStats> stats;
  if (arguments.stats) {
    stats = ReplayStats{result.machine, result.report, result.started_at, opening, seconds};
  }
  if (arguments.json) {
    print_json(result, seconds, stats, console);
    return;
  }
  if (!is_standard_output(arguments.output)) print_text(result, seconds, console);
  if (!stats) return;
  for (const std::string& line : stats_lines(*stats)) console.note(line);
}

/// Says that the trace is KT where the name of its file promises something else.
void note_format(const ReplayArguments& arguments, const Console& console) {
  const std::string& name = arguments.output;
  if (!arguments.format.empty() || name.empty()) return;
  if (output_kind(name) != OutputKind::replaced) return;
  if (has_trace_ending(name)) return;
  console.note(name + ": a KT trace, since no format is known by this ending (see --format)");
}

ExitCode replay_one(ReplayArguments arguments, const Console& console) {
  const auto opened = std::chrono::steady_clock::now();
  arguments.range = arguments.positions.instructions();
  if (!arguments.shard.empty() && arguments.positions.within_repeat()) {
    throw UsageError("--shard: --from and --to must not lie within a REP");
  }
  const PlacedRecording placed = open_placed(arguments.recording, console, arguments.hints);
  const RecordingFile& file = placed.file;
  // Processes and shares open the recording for themselves, and know it by what is in its file.
  if (!arguments.hints.empty() && (!arguments.shard.empty() || arguments.jobs > 1)) {
    throw UsageError(
        "--hints excludes --jobs and --shard; `import --hints` keeps the hints in a recording");
  }
  const tools::ExporterRow* exporter = exporter_for(arguments.format, arguments.output);
  if (exporter == nullptr && arguments.scope.selects()) {
    exporter = &kt_exporter();
    arguments.format = selected_kt(arguments.addresses, arguments.processes);
  }
  if (exporter != nullptr) {
    return replay_to_exporter(arguments, file, *exporter, seconds_since(opened), console);
  }
  note_format(arguments, console);
  std::optional<ShardDescription> shard;
  if (!arguments.shard.empty()) {
    shard = narrow_to_shard(arguments, file);
    if (is_made(*shard, arguments.output)) {
      console.note(arguments.output + " is there already");
      return ExitCode::ok;
    }
  }
  KtOptions kt = kt_options(arguments);
  // A share that others precede goes on where they end.
  kt.begins_trace = !shard || shard->range.from == shard->whole.from;
  const KtForm form = kt_form(file.recording().initial.model);
  std::optional<TraceOutput> output;
  const auto start_over = [&] {
    output.reset();
    return &output.emplace(arguments.output, kt, form, shard.has_value()).trace;
  };
  Observer* const trace = start_over();

  TraceRunOptions options;
  if (can_be_taken_back(arguments.output)) options.start_over = start_over;
  options.recording = arguments.recording;
  options.remember = !placed.search && arguments.hints.empty();
  options.range = arguments.range;
  options.within = arguments.positions.end_within();
  options.check = !arguments.unchecked;
  options.policy = arguments.comparison;
  options.path = arguments.path;
  // Checkpoints are of the run without the hints.
  options.use_checkpoints = !arguments.from_start && arguments.hints.empty();
  const double opening = seconds_since(opened);
  const auto start = std::chrono::steady_clock::now();
  const bool parallel = arguments.jobs > 1 && !arguments.output.empty() && !arguments.from_start;
  const TraceRunResult result =
      parallel ? run_parallel_trace(file, kt, output->writer, options,
                                    static_cast<unsigned>(arguments.jobs), console)
               : run_trace(file, arguments.output.empty() ? nullptr : trace, options, console);
  if (!parallel) output->trace.end(result.report.instructions);
  output->writer.flush();
  const double seconds = seconds_since(start);

  const ReplayReport& report = result.report;
  if (report.end != ReplayReport::End::diverged && output->writer.instructions() == 0 &&
      !(arguments.output.empty() && report.instructions == arguments.range.from)) {
    arguments.positions.require_reached(arguments.recording, report.instructions);
  }
  // A trace that diverged from the evidence does not get the name asked for: what was sure until
  // then stays beside it as `.partial`.
  if (result.sure()) keep_trace(*output, shard, arguments.output);
  print_result(result, opening, seconds, arguments, console);
  result.warn(console);
  return result.sure() ? ExitCode::ok : ExitCode::answer_is_no;
}

/// Each of several processors, with an output of its own.
ExitCode replay_each(const MachineFile& machine, ReplayArguments arguments,
                     const Console& console) {
  if (!arguments.positions.from.empty() || !arguments.positions.to.empty())
    throw UsageError("--from and --to: name the processor, too, as in P:N");
  if (!arguments.shard.empty() || !arguments.hints.empty())
    throw UsageError("--shard and --hints need --processor P, because the recording has several");
  const std::string output = arguments.output;
  const bool has_files = !output.empty() && output != "/dev/null";
  const tools::ExporterRow* const exporter = exporter_for(arguments.format, output);
  const bool joins = has_files && exporter != nullptr && exporter->join != nullptr &&
                     output_kind(output) == OutputKind::replaced && !output.ends_with(".zst");
  std::vector<std::string> parts;
  if (joins && std::filesystem::exists(std::filesystem::symlink_status(output))) {
    throw IoError(output + ": expected a new name for a folder, found something of that name");
  }
  if (has_files && output_kind(output) != OutputKind::replaced) {
    throw UsageError("-o " + output + ": several processors need a file each: say which one with " +
                     "--processor P");
  }
  for (std::size_t p = 0; p < machine.processors(); ++p) {
    parts.push_back(has_files ? path_of_processor(output, p) : output);
  }
  const auto jobs = static_cast<unsigned>(arguments.jobs);
  arguments.jobs = jobs_of_each(arguments.jobs, machine);
  const ExitCode code =
      for_each_processor(machine, console, arguments.json, jobs,
                         [&](std::size_t number, const std::string& name, const Console& its) {
                           arguments.recording = name;
                           arguments.output = parts[number];
                           return replay_one(arguments, its);
                         });
  if (joins && code == ExitCode::ok) exporter->join(parts, output);
  return code;
}

ExitCode run_replay(ReplayArguments arguments, const Console& console) {
  if (asks_for_help(arguments.format)) {
    describe_tool(format_name(arguments.format), std::nullopt, console);
    return ExitCode::ok;
  }
  require_own_output(arguments.output, arguments.json);
  if (arguments.stats && arguments.jobs > 1) {
    throw UsageError("--stats excludes --jobs, whose processes count for themselves");
  }
  arguments.processor.take_from(arguments.positions);
  arguments.recording = arguments.processor.name(arguments.recording);
  const std::optional<MachineFile> machine = find_machine(arguments.recording);
  return machine ? replay_each(*machine, std::move(arguments), console)
                 : replay_one(std::move(arguments), console);
}

CommandRun define_replay(const CommandParser& parser) {
  auto arguments = std::make_shared<ReplayArguments>();
  parser.add_option("RECORDING", arguments->recording, "Recording to replay").required();
  parser
      .add_option("-o,--output", arguments->output,
                  "Trace to write: .kt, .kt.zst (compressed), .ktz (much smaller) or an ending of "
                  "--format; - is stdout")
      .type_name(kFileType);
  arguments->positions.define(parser);
  arguments->processor.define(parser);
  parser
      .add_option("--jobs", arguments->jobs,
                  "Number of processes that replay parts of the trace, each from a checkpoint")
      .in_range(1, 1024);
  parser.add_option(
      "--shard", arguments->shard,
      "Write only share K of N, which `merge` joins: K/N, or auto, which asks the batch system");
  parser.add_option("--format", arguments->format,
                    "NAME or NAME:key=value,...: kt (default, unless the ending says otherwise), " +
                        exporter_names());
  arguments->scope.define(parser);
  parser
      .add_option("--addresses", arguments->addresses,
                  "Addresses of instructions: linear, or offset in the code segment")
      .type_name(type_of({"linear", "offset"}));
  parser.add_flag(
      "--processes", arguments->processes,
      "Write PID and MMU records at the beginning and at each change of the address space");
  define_hints(parser, arguments->hints);
  define_comparison(parser, arguments->comparison);
  define_unchecked(parser, arguments->unchecked);
  define_from_start(parser, arguments->from_start);
  define_engine(parser, arguments->path);
  parser.add_flag("--stats", arguments->stats,
                  "Print, on stderr or in the JSON, what the replay did and how long it took");
  parser.add_flag("--json", arguments->json, "Print one line of JSON");
  return [arguments](const Console& console) { return run_replay(*arguments, console); };
}

}  // namespace

extern const Command kReplayCommand{
    "replay", "Recompute the run and write its instruction trace",
    "citcat replay boot.citcat -o boot.kt.zst --to 1000000\n"
    "citcat replay boot.citcat -o user.kt.zst --where level=3\n"
    "citcat replay boot.citcat -o boot.trc\n"
    "citcat replay boot.citcat -o boot.drmemtrace --format drmemtrace:view=user\n"
    "citcat replay boot.citcat --stats --json",
    define_replay};

}  // namespace citcat
