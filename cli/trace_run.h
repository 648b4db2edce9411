#pragma once
// A replay that writes a trace, begun again if the plain comparison did not suffice.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cli/console.h"
#include "events/archive/recording_file.h"
#include "replay/machine/execution_path.h"
#include "replay/machine/machine_stats.h"
#include "replay/machine/observer.h"
#include "replay/session/checkpoint_start.h"
#include "replay/session/replay_report.h"
#include "replay/verify/comparison_policy.h"

namespace citcat {

struct TraceRunOptions {
  ReplayRange range;
  std::optional<Position> within = std::nullopt;  ///< as in SessionOptions
  bool check = true;                              ///< compare with evidence or digests on the way
  ComparisonPolicy policy;
  ExecutionPath path = ExecutionPath::blocks;
  bool use_checkpoints = true;  ///< begin at the last checkpoint before the range
  /// As in SessionOptions. Empty for a stream, which cannot be taken back: unless the archive
  /// remembers that it was verified, it is verified first (replay/run/verified_run.h).
  std::function<Observer*()> start_over;
  std::string recording;  ///< the name that the archive was opened by
  bool remember = false;  ///< what verifying gives may be added to it
};

struct TraceRunResult {
  ReplayReport report;
  std::uint64_t started_at = 0;  ///< instruction of the checkpoint used
  MachineStats machine;          ///< of the machine that gave the result; zero where several did
  /// Where an archive's digests showed another run.
  std::optional<std::uint64_t> differs_before;
  double clock_hz = 0;  ///< clocks of the capture a second; 0 if it is not known
  /// Nothing contradicted the replay.
  bool sure() const { return report.end != ReplayReport::End::diverged && !differs_before; }
  /// Says what contradicted it.
  void warn(const Console& console) const;
};

/// Replays what is needed for `range`; `trace` may be null, and may receive more than the range.
TraceRunResult run_trace(const RecordingFile& file, Observer* trace, const TraceRunOptions& options,
                         const Console& console);

}  // namespace citcat
