#pragma once
// The lines that the cache of one of several processors lost to the others, from their archive.

#include "events/archive/recording_file.h"
#include "events/taken_line.h"

namespace citcat {

/// Empty for a recording of one processor, and where the archive has no evidence or can be read
/// only once.
TakenLineReader lost_lines_of(const RecordingFile& file);

}  // namespace citcat
