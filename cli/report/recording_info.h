#pragma once
// The facts about a recording that `info` prints.

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "events/archive/recording_file.h"
#include "events/recording.h"

namespace citcat {

nlohmann::ordered_json bus_json(const BusModel& bus);
nlohmann::ordered_json files_json(const std::vector<Provenance::File>& files);
/// Where it comes from, what is in it, how large each part is, its hashes.
nlohmann::ordered_json recording_info(const RecordingFile& file);
/// The counts of all recordings of the archive `path` together; a count that one of them does not
/// have is null.
nlohmann::ordered_json all_recordings_info(const std::string& path, std::size_t recordings);

}  // namespace citcat
