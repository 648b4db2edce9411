#include "cli/trace_run.h"

#include <fmt/format.h>

#include "cli/divergence_report.h"
#include "cli/replay_progress.h"
#include "cli/stream_start.h"
#include "events/capture_time.h"
#include "replay/machine/machine.h"
#include "replay/run/replay_session.h"
#include "replay/session/checkpoints.h"

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
  if (trace != nullptr && !options.start_over && options.use_checkpoints &&
      compares_as_usual(run_options)) {
    checkpoints.emplace(file);
    run_options.checkpoints = &*checkpoints;
    if (!checkpoints->start_for(options.range))
      verify_first(file, options.recording, options.remember, run_options, verified, console);
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
