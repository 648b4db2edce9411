#include "cli/trace_run.h"

#include <fmt/format.h>

#include "cli/divergence_report.h"
#include "cli/replay_progress.h"
#include "events/capture_time.h"
#include "replay/machine/machine.h"
#include "replay/run/replay_session.h"
#include "replay/run/verified_run.h"

namespace citcat {

void TraceRunResult::warn(const Console& console) const {
  if (report.divergence) {
    for (const std::string& line : divergence_lines(*report.divergence, clock_hz))
      console.warn(line);
  }
  if (differs_before) {
    console.warn(
        fmt::format("the replay is not the one that was verified: it went another way "
                    "before instruction {}",
                    *differs_before));
  }
}

namespace {

/// Up to this many instructions the careful comparison is cheaper than verifying first.
constexpr std::uint64_t kFewInstructions = std::uint64_t{1} << 21;

/// A stream that is to be compared: begins with what the archive remembers of having been verified,
/// or verifies it now. Changes nothing where the recording diverges: a careful comparison then
/// finds out how far the stream is right.
void verify_first(const RecordingFile& file, const TraceRunOptions& options, SessionOptions& run,
                  std::optional<CheckpointRun>& verified, const Console& console) {
  run.start = run.checkpoints->beginning();
  if (run.start || options.range.to <= kFewInstructions) return;
  CheckpointedRun whole =
      verify_once(file, options.recording, !options.remember, replay_progress(file, console));
  if (!whole.sure()) return;
  verified = std::move(whole.run);
  run.verified = &*verified;
}

}  // namespace

TraceRunResult run_trace(const RecordingFile& file, Observer* trace, const TraceRunOptions& options,
                         const Console& console) {
  SessionOptions run_options;
  if (options.use_checkpoints) run_options.from = options.range.from;
  run_options.to = options.range.to;
  run_options.within = options.within;
  run_options.check = options.check;
  run_options.policy = options.policy;
  run_options.path = options.path;
  std::optional<Checkpoints> checkpoints;
  std::optional<CheckpointRun> verified;
  const bool compares_as_usual = options.check && options.path == ExecutionPath::blocks &&
                                 !options.policy.strict && options.policy.waived.empty();
  if (trace != nullptr && !options.start_over && options.use_checkpoints && compares_as_usual) {
    checkpoints.emplace(file);
    run_options.checkpoints = &*checkpoints;
    if (!checkpoints->start_for(options.range))
      verify_first(file, options, run_options, verified, console);
  }
  run_options.start_over = options.start_over;
  run_options.plain_first = true;
  run_options.progress = replay_progress(file, console);
  ReplaySession session(file, trace, run_options);
  TraceRunResult result;
  result.started_at = session.began_at();
  result.clock_hz = clock_rate(file.recording().provenance);
  result.report = session.run();
  result.machine = session.machine().stats();
  result.differs_before = session.differs_before();
  return result;
}

}  // namespace citcat
