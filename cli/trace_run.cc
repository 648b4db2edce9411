#include "cli/trace_run.h"

#include <fmt/format.h>

#include "cli/divergence_report.h"
#include "cli/replay_progress.h"
#include "replay/run/replay_session.h"
#include "replay/run/verified_run.h"

namespace citcat {

void TraceRunResult::warn(const Console& console) const {
  if (report.divergence) {
    for (const std::string& line : divergence_lines(*report.divergence)) console.warn(line);
  }
  if (differs_before) {
    console.warn(
        fmt::format("the replay is not the one that was verified: it went another way "
                    "before instruction {}",
                    *differs_before));
  }
}

namespace {

/// Of so many instructions the careful comparison takes less than verifying a long recording would.
constexpr std::uint64_t kFewInstructions = std::uint64_t{1} << 21;

/// A stream that is to be compared: begins with what the archive remembers of having been verified,
/// or verifies it now. Changes nothing where the recording diverges: a careful comparison then finds
/// out how far the stream is right.
void verify_first(const RecordingFile& file, const Checkpoints& checkpoints,
                  const TraceRunOptions& options, SessionOptions& run, const Console& console) {
  run.start = checkpoints.beginning();
  if (run.start) {
    run.checkpoints = &checkpoints;
    return;
  }
  if (options.range.to <= kFewInstructions) return;
  const CheckpointedRun verified =
      verify_once(file, options.recording, !options.remember, replay_progress(file, console));
  if (verified.sure()) run.verified = verified.run;
}

}  // namespace

TraceRunResult run_trace(const RecordingFile& file, Observer* trace, const TraceRunOptions& options,
                         const Console& console) {
  const Checkpoints checkpoints(file);
  SessionOptions run_options;
  run_options.to = options.range.to;
  run_options.check = options.check;
  run_options.policy = options.policy;
  run_options.path = options.path;
  if (options.use_checkpoints) {
    run_options.start = checkpoints.start_for(options.range, options.policy.strict);
    run_options.checkpoints = &checkpoints;
  }
  const bool compares_as_usual = options.check && options.path == ExecutionPath::blocks &&
                                 !options.policy.strict && options.policy.waived.empty();
  if (trace != nullptr && !options.start_over && options.use_checkpoints && !run_options.start &&
      compares_as_usual) {
    verify_first(file, checkpoints, options, run_options, console);
  }
  run_options.start_over = options.start_over;
  run_options.plain_first = true;
  run_options.progress = replay_progress(file, console);
  TraceRunResult result;
  if (run_options.start) result.started_at = run_options.start->instruction;
  ReplaySession session(file, trace, run_options);
  result.report = session.run();
  result.machine = session.machine().stats();
  result.differs_before = session.digests().compare(result.report.instructions);
  return result;
}

}  // namespace citcat
