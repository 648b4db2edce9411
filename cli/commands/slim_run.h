#pragma once
// The work of `citcat slim`, between reading a recording and giving its output a name.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/staged_output.h"
#include "events/adoption.h"
#include "events/archive/recording_file.h"
#include "events/position.h"

namespace citcat {

/// The data that a slim recording keeps of a verified replay.
struct SlimRun {
  std::uint64_t instructions = 0;
  std::vector<Adoption> adoptions;
  std::vector<ReplayDigest> digests;
  Position end;
  bool shut_down = false;  ///< it ended in a shutdown
};

/// Verifies `full`, and writes it to `output` without evidence where a replay of that is the same
/// run. Throws UsageError where it is not, or the evidence does not confirm the recording.
SlimRun write_slim(const RecordingFile& full, const StagedOutput& output, const Console& console);
/// The same for all recordings of the archive `path`. Returns what they give together; `end` is not
/// set.
SlimRun write_slim_of_all(const std::string& path, std::size_t recordings,
                          const StagedOutput& output, const Console& console);

}  // namespace citcat
