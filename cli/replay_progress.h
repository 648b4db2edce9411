#pragma once
// The progress line of a replay.

#include <functional>

#include "cli/console.h"
#include "events/archive/recording_file.h"
#include "events/position.h"

namespace citcat {

/// For SessionOptions::progress; the line ends with the last copy.
std::function<void(Position)> replay_progress(const RecordingFile& file, const Console& console);

}  // namespace citcat
