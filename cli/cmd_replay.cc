#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/digest_verify.h"
#include "cli/replay_run.h"
#include "formats/byte_sink.h"
#include "formats/error.h"
#include "formats/kt.h"
#include "replay/kt_sink.h"

namespace citcat {
namespace {

struct ReplayArguments {
  std::string recording, output;
  std::string addresses = "linear";
  std::uint64_t from = 0;
  std::uint64_t to = ~std::uint64_t{0};
  int jobs = 1;
  bool processes = false, strict = false, unchecked = false, json = false;
};

KtOptions kt_options(const ReplayArguments& arguments) {
  KtOptions options;
  if (arguments.addresses != "linear" && arguments.addresses != "offset") {
    throw UsageError("--addresses: expected linear or offset, found " + arguments.addresses);
  }
  if (arguments.from > arguments.to) throw UsageError("--from lies behind --to");
  options.from = arguments.from;
  options.to = arguments.to;
  options.offsets = arguments.addresses == "offset";
  options.process_records = arguments.processes;
  return options;
}

void print_json(const ReplayReport& report, double seconds, const Console& console) {
  nlohmann::ordered_json json;
  json["instructions"] = report.instructions;
  json["seconds"] = seconds;
  json["mips"] = seconds > 0 ? static_cast<double>(report.instructions) / seconds / 1e6 : 0.0;
  json["interrupts"] = report.interrupts;
  json["exceptions"] = report.exceptions;
  json["io_reads"] = report.io_reads;
  json["external_writes"] = report.external_writes;
  json["end"] = replay_end_name(report.end);
  json["divergence"] = divergence_json(report.divergence);
  console.print_json(json);
}

void print_text(const ReplayReport& report, double seconds, const Console& console) {
  console.print(fmt::format(
      "{}: {} instructions in {:.2f} s ({:.1f} million/s)\n"
      "  interrupts       {}\n  exceptions       {}\n  I/O reads        {}\n"
      "  external writes  {}\n",
      replay_end_name(report.end), report.instructions, seconds,
      seconds > 0 ? static_cast<double>(report.instructions) / seconds / 1e6 : 0.0,
      report.interrupts, report.exceptions, report.io_reads, report.external_writes));
}

ExitCode run_replay(const ReplayArguments& arguments, const Console& console) {
  const KtOptions kt = kt_options(arguments);
  const RecordingFile file = RecordingFile::open(arguments.recording);
  const std::unique_ptr<ByteSink> out = open_sink(arguments.output);
  KtWriter writer(*out);
  KtSink trace(writer, kt);

  ReplayRunOptions options;
  options.to = arguments.to;
  options.check = !arguments.unchecked;
  options.strict = arguments.strict;
  DigestCheck digests(file, options);
  Sink* const output = arguments.output.empty() ? nullptr : &trace;
  SinkList both;
  if (output != nullptr) both.add(*output);
  both.add(digests.sink());
  ReplayRun run(file, digests.needed() ? &both : output, options, console);
  const auto start = std::chrono::steady_clock::now();
  const ReplayReport report = run.run();
  writer.flush();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;

  // A trace that left the evidence does not get the name asked for: what was sure until then stays
  // beside it as `.partial`.
  const std::optional<std::uint64_t> differs_before = digests.compare(report.instructions);
  const bool sure = report.end != ReplayReport::End::diverged && !differs_before;
  if (sure) out->finish();
  if (arguments.json) {
    print_json(report, seconds.count(), console);
  } else if (arguments.output != "-") {
    print_text(report, seconds.count(), console);
  }
  if (report.divergence) {
    for (const std::string& line : divergence_lines(*report.divergence)) console.warn(line);
  }
  if (differs_before) {
    console.warn(fmt::format("the replay is not the one that was verified: it went another way "
                             "before instruction {}",
                             *differs_before));
  }
  return sure ? ExitCode::ok : ExitCode::answer_is_no;
}

CommandRun define_replay(CLI::App& app) {
  auto arguments = std::make_shared<ReplayArguments>();
  app.add_option("RECORDING", arguments->recording, "Recording to replay")->required();
  app.add_option("-o,--output", arguments->output,
                 "KT trace to write; .zst compresses, - is the standard output");
  app.add_option("--from", arguments->from, "First instruction of the trace");
  app.add_option("--to", arguments->to, "First instruction that is not in the trace");
  app.add_option("--jobs", arguments->jobs, "Processes to use; one is used for now, whatever is asked");
  app.add_option("--addresses", arguments->addresses, "linear or offset (in the code segment)");
  app.add_flag("--processes", arguments->processes,
               "Write PID and MMU records at changes of the address space");
  app.add_flag("--strict", arguments->strict,
               "Take no result over from the bus where implementations differ");
  app.add_flag("--unchecked", arguments->unchecked, "Do not compare with the evidence on the way");
  app.add_flag("--json", arguments->json, "Print one line of JSON");
  return [arguments](const Console& console) { return run_replay(*arguments, console); };
}

}  // namespace

extern const Command kReplayCommand{"replay", "Recompute the run and write its instruction trace",
                                    "citcat replay boot.citcat -o boot.kt.zst --to 1000000",
                                    define_replay};

}  // namespace citcat
