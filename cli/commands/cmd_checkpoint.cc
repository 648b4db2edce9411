// citcat checkpoint: adds checkpoints to an archive, so that any part of its run is near one.

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/digest_verify.h"
#include "cli/machine/each_processor.h"
#include "cli/machine/processor_argument.h"
#include "cli/placed_recording.h"
#include "cli/replay_progress.h"
#include "cli/trace_run.h"
#include "events/archive/container.h"
#include "formats/io/error.h"
#include "replay/run/verified_run.h"
#include "replay/session/checkpoints.h"

namespace citcat {
namespace {

struct CheckpointArguments {
  std::string recording;
  ProcessorArgument processor;
  CheckpointTaker::Options options;
  bool json = false;
};

/// What was taken.
struct Taken {
  TraceRunResult result;
  std::size_t checkpoints = 0;
  std::uint64_t spacing = 0, bytes = 0;
  double seconds = 0;
};

/// One replay with checkpoints on the way, added to the archive when nothing contradicted it up to
/// its end.
Taken take_checkpoints(const RecordingFile& file, const CheckpointArguments& arguments,
                       const Console& console) {
  const auto start = std::chrono::steady_clock::now();
  CheckpointedRun run =
      run_with_checkpoints(file, arguments.options, replay_progress(file, console));
  Taken taken;
  taken.result.report = run.report;
  taken.result.differs_before = run.differs_before;
  taken.checkpoints = run.taker.count();
  taken.spacing = run.taker.spacing();
  if (run.sure()) run.taker.append_to(arguments.recording, run.run.end, run.run.adoptions);
  taken.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return taken;
}

/// Adds checkpoints to the recording that is named.
ExitCode add_checkpoints(CheckpointArguments arguments, const Console& console) {
  const PlacedRecording placed = open_placed(arguments.recording, console);
  const RecordingFile& file = placed.file;
  const std::uint64_t existing = Checkpoints(file).stored_bytes();
  if (existing >= arguments.options.max_bytes) {
    throw UsageError(
        fmt::format("{} has {} bytes of checkpoints already: --max-size leaves no room",
                    arguments.recording, existing));
  }
  arguments.options.max_bytes -= existing;
  Taken taken = take_checkpoints(file, arguments, console);
  if (taken.result.sure()) keep_placements(arguments.recording, placed);
  const RecordingFile after = RecordingFile::open(arguments.recording);
  // Not the difference of the files: an append that was interrupted before may be gone from it.
  taken.bytes = Checkpoints(after).stored_bytes() - existing;
  if (arguments.json) {
    nlohmann::ordered_json json;
    json["instructions"] = taken.result.report.instructions;
    json["checkpoints"] = taken.checkpoints;
    json["every"] = taken.spacing;
    json["bytes"] = taken.bytes;
    json["seconds"] = taken.seconds;
    json["end"] = replay_end_name(taken.result.report.end);
    console.print_json(json);
  } else if (taken.result.sure()) {
    console.print(fmt::format("{} checkpoints, one every {} instructions: {} bytes in {:.1f} s\n",
                              taken.checkpoints, taken.spacing, taken.bytes, taken.seconds));
  }
  taken.result.warn(console);
  return taken.result.sure() ? ExitCode::ok : ExitCode::answer_is_no;
}

ExitCode run_checkpoint(CheckpointArguments arguments, const Console& console) {
  require_file_to_add_to(arguments.recording);
  arguments.recording = arguments.processor.name(arguments.recording);
  const std::optional<MachineFile> machine = find_machine(arguments.recording);
  if (!machine) return add_checkpoints(arguments, console);
  // What is allowed is for all of them.
  arguments.options.max_bytes /= machine->processors();
  return for_each_processor(*machine, console, arguments.json, 1,
                            [&](std::size_t, const std::string& name, const Console& its) {
                              arguments.recording = name;
                              return add_checkpoints(arguments, its);
                            });
}

CommandRun define_checkpoint(const CommandParser& parser) {
  auto arguments = std::make_shared<CheckpointArguments>();
  parser.add_option("RECORDING", arguments->recording, "Recording to add checkpoints to")
      .required();
  arguments->processor.define(parser);
  parser
      .add_option("--every", arguments->options.every,
                  "Instructions between checkpoints, as far as --max-size allows")
      .positive();
  parser
      .add_option("--max-size", arguments->options.max_bytes,
                  "Largest size of all checkpoints together; beyond it every second one is dropped "
                  "(default: 64M)")
      .as_size();
  parser.add_flag("--json", arguments->json, "Print one line of JSON");
  return [arguments](const Console& console) { return run_checkpoint(*arguments, console); };
}

}  // namespace

extern const Command kCheckpointCommand{
    "checkpoint", "Add checkpoints to a recording, so that any part can be reached at once",
    "citcat checkpoint boot.citcat --max-size 16M", define_checkpoint};

}  // namespace citcat
