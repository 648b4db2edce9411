// citcat slim: a recording that was verified, without its evidence.

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/digest_verify.h"
#include "cli/parsing/command_description.h"
#include "cli/placed_recording.h"
#include "cli/replay_progress.h"
#include "cli/staged_output.h"
#include "events/archive/container.h"
#include "events/archive/recording_file.h"
#include "events/derive/event_order.h"
#include "events/derive/external_writes.h"
#include "formats/io/error.h"
#include "replay/run/replay_session.h"
#include "replay/session/digest_sink.h"
#include "replay/session/run_end.h"

namespace citcat {
namespace {

struct SlimOptions {
  std::string input, output;
  bool json = false;
};

/// What a verified replay leaves of its evidence.
struct VerifiedRun {
  std::uint64_t instructions = 0;
  std::vector<Adoption> adoptions;
  std::vector<ReplayDigest> digests;
  Position end;
};

/// A recording like `from`, ready for an archive without evidence.
Recording copy_for_slim(const Recording& from, const VerifiedRun& verified, bool merge) {
  Recording copy = from.clone();
  if (merge) copy.external_writes = merge_external_writes(from.external_writes);
  // Where the evidence ended is known from now on by count.
  copy.instructions = last_stop(verified.end, ~std::uint64_t{0});
  copy.adoptions = verified.adoptions;
  copy.end.reset();
  if (verified.end.iteration != 0) copy.end = verified.end;
  number_events_by_order(copy);
  return copy;
}

/// Throws UsageError when the evidence does not confirm the recording.
VerifiedRun verified_run(const RecordingFile& file, const Console& console) {
  std::optional<DigestSink> sink;
  SessionOptions options;
  options.plain_first = true;
  options.start_over = [&sink] { return &sink.emplace(); };
  options.progress = replay_progress(file, console);
  ReplaySession run(file, options.start_over(), options);
  const ReplayReport report = run.run();
  if (report.end != ReplayReport::End::complete) {
    throw UsageError(file.container().path() +
                     " does not replay to its end as its evidence shows: only a verified recording "
                     "can do without it (see citcat verify)");
  }
  return {report.instructions, run.adoptions(), sink->finish(report.instructions),
          run.position()};
}

/// Writes `recording` without evidence to `path` and replays it. True when that gives the digests.
bool write_and_verify(const std::string& path, const Recording& recording,
                      const std::vector<ReplayDigest>& digests,
                      const std::vector<SymbolModule>& symbols, const Console& console) {
  RecordingFileOptions options;
  options.evidence = EvidenceMode::digests;
  options.lean = true;
  RecordingFileWriter writer(path, options);
  writer.add(recording, digests);
  writer.add_symbols(symbols);
  writer.close();
  return verify_digests(RecordingFile::open(path), console).match();
}

void print_result(const SlimOptions& options, const RecordingFile& full,
                  const VerifiedRun& verified, std::uint64_t bytes, const Console& console) {
  if (options.json) {
    console.print_json({{"instructions", verified.instructions},
                        {"bytes", bytes},
                        {"full_bytes", full.container().file_bytes()},
                        {"digests", verified.digests.size()},
                        {"adoptions", verified.adoptions.size()}});
  } else if (!is_standard_output(options.output)) {
    console.print(fmt::format("{}: {} bytes for {} instructions (with evidence {})\n",
                              options.output, bytes, verified.instructions,
                              full.container().file_bytes()));
  }
}

ExitCode run_slim(const SlimOptions& options, const Console& console) {
  require_own_output(options.output, options.json);
  StagedOutput output(options.output);
  const PlacedRecording placed = open_placed(options.input, console);
  const RecordingFile& full = placed.file;
  const VerifiedRun verified = verified_run(full, console);
  const std::vector<SymbolModule> symbols = full.symbols();
  bool same = false;
  for (const bool merge : {true, false}) {
    if (same) break;
    const Recording slim = copy_for_slim(full.recording(), verified, merge);
    same = write_and_verify(output.path(), slim, verified.digests, symbols, console);
  }
  // The replay of the full recording could consult the evidence; this one cannot.
  if (!same) {
    throw UsageError(options.input +
                     " needs its evidence to replay: without it the run is another");
  }
  const auto bytes = std::filesystem::file_size(output.path());
  output.finish();
  print_result(options, full, verified, bytes, console);
  return ExitCode::ok;
}

CommandRun define_slim(const CommandParser& parser) {
  auto options = std::make_shared<SlimOptions>();
  parser.add_option("RECORDING", options->input, "Recording with its evidence").required();
  parser.add_option("-o,--output", options->output, "Recording to write, - is the standard output")
      .required()
      .type_name(kFileType);
  parser.add_flag("--json", options->json, "Print one line of JSON");
  return [options](const Console& console) { return run_slim(*options, console); };
}

}  // namespace

extern const Command kSlimCommand{"slim", "Verify a recording and keep digests for its evidence",
                                  "citcat slim boot.citcat -o boot-slim.citcat", define_slim};

}  // namespace citcat
