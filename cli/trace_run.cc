#include "cli/trace_run.h"

#include <fmt/format.h>

#include "cli/digest_verify.h"
#include "cli/replay_run.h"

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

TraceRunResult run_trace(const RecordingFile& file, Sink* trace, const TraceRunOptions& options,
                         const Console& console) {
  const Checkpoints checkpoints(file);
  ReplayRunOptions run_options;
  run_options.to = options.range.to;
  run_options.check = options.check;
  run_options.policy = options.policy;
  if (options.use_checkpoints) {
    run_options.start = checkpoints.start_for(options.range, options.policy.strict);
    run_options.checkpoints = &checkpoints;
  }
  if (run_options.start) run_options.check = false;
  DigestCheck digests(file, run_options);
  run_options.start_over = options.start_over;
  run_options.machine_made = options.machine_made;
  run_options.plain_first = !digests.needed() && (trace == nullptr || options.start_over);
  SinkList both;
  if (trace != nullptr) both.add(*trace);
  both.add(digests.sink());
  TraceRunResult result;
  if (run_options.start) result.started_at = run_options.start->instruction;
  ReplayRun run(file, digests.needed() ? &both : trace, run_options, console);
  result.report = run.run();
  result.differs_before = digests.compare(result.report.instructions);
  return result;
}

}  // namespace citcat
