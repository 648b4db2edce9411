#pragma once
// Advice from the lines of a bus where a replay diverged: a probe that came off shows the same
// level in the whole capture.

#include <string>
#include <vector>

#include "events/archive/recording_file.h"

namespace citcat {

/// Lines that look stuck or swapped in all that the recording's evidence shows, one text each.
std::vector<std::string> line_advice(const RecordingFile& file);

}  // namespace citcat
