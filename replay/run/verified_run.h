#pragma once
// A recording is compared with its evidence once, and the result is kept, so that later streams of
// its trace need no comparison.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "events/archive/checkpoint_series.h"
#include "events/archive/recording_file.h"
#include "replay/session/checkpoints.h"
#include "replay/session/replayer.h"

namespace citcat {

/// A replay from beginning to end that was compared, with checkpoints taken on the way.
struct CheckpointedRun {
  ReplayReport report;
  /// Where an archive's digests showed another run.
  std::optional<std::uint64_t> differs_before;
  CheckpointRun run;      ///< what it rests on
  CheckpointTaker taker;  ///< with what it took
  /// Nothing contradicted the replay.
  bool sure() const { return report.end != ReplayReport::End::diverged && !differs_before; }
};

/// Replays `file`, which must have its interrupts placed. Compares plainly first, and once more
/// carefully where that does not suffice (SessionOptions::plain_first). `progress` may be empty.
CheckpointedRun run_with_checkpoints(const RecordingFile& file,
                                     const CheckpointTaker::Options& options,
                                     const std::function<void(Position)>& progress);

/// The same for who is going to stream the trace of `file`, which was opened as `path`. What is to
/// be remembered is added to the archive, with checkpoints of at most an eighth of its size, where
/// it is a file that can be written, and its interrupts had their places when it was opened
/// (`placed_now` is false); it counts from the next opening on. A recording that diverges is left
/// as it is. Throws nothing that adding throws.
CheckpointedRun verify_once(const RecordingFile& file, const std::string& path, bool placed_now,
                            const std::function<void(Position)>& progress);

}  // namespace citcat
