#pragma once
// Output that is written as the replay goes on, and cannot be written a second time.

#include <optional>
#include <string>

#include "cli/console.h"
#include "events/archive/checkpoint_series.h"
#include "events/archive/recording_file.h"
#include "replay/run/replay_session.h"

namespace citcat {

/// Whether an output can be begun again: not one on the standard output, a pipe or a device.
bool can_be_taken_back(const std::string& path);

/// Whether `run` is compared with evidence or digests, with nothing about the comparison changed:
/// what was found out before then holds for it.
bool compares_as_usual(const SessionOptions& run);

/// For a stream that is to be compared. Lets `run`, whose `checkpoints` must be set, begin with
/// what the archive remembers of having been verified; else verifies the recording now, unless `to`
/// is so near that a careful comparison is cheaper. `verified` keeps what verifying gave, and must
/// outlive the run. `recording`: the name that the archive was opened by. `remember`: the archive
/// may remember it. Changes nothing where the recording diverges: the careful comparison then finds
/// out how far the stream is right.
void verify_first(const RecordingFile& file, const std::string& recording, bool remember,
                  SessionOptions& run, std::optional<CheckpointRun>& verified,
                  const Console& console);

}  // namespace citcat
