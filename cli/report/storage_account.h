#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/console.h"
#include "events/archive/recording_file.h"

namespace citcat {

/// How many bytes of a recording's archive each kind of chunk takes, with headers and indexes, and
/// how many that is per instruction.
nlohmann::ordered_json storage_json(const RecordingFile& file);

/// Replays the recording and measures its trace: KT, and KT compressed by zstd, each with its ratio
/// to the archive.
nlohmann::ordered_json trace_json(const RecordingFile& file, const Console& console);

}  // namespace citcat
