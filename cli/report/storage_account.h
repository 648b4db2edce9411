#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/console.h"
#include "events/archive/recording_file.h"

namespace citcat {

/// Where the bytes of a recording's archive are: by kind of chunk, with headers and indexes, and
/// what that is for each instruction.
nlohmann::ordered_json storage_json(const RecordingFile& file);

/// Replays the recording and measures its trace: KT, and KT compressed by zstd, each with its ratio
/// to the archive.
nlohmann::ordered_json trace_json(const RecordingFile& file, const Console& console);

}  // namespace citcat
