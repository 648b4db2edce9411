#pragma once
// What the lines of a bus themselves say where a replay left its evidence: a probe that came off
// shows one level in everything that was captured.

#include <string>
#include <vector>

#include "events/archive/recording_file.h"

namespace citcat {

/// Lines that look stuck or swapped in all that the recording's evidence shows, one text each.
std::vector<std::string> line_advice(const RecordingFile& file);

}  // namespace citcat
