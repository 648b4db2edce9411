#pragma once
// Prints what `info` says about an archive of several processors.

#include <nlohmann/json_fwd.hpp>

#include "events/archive/machine_file.h"

namespace citcat {

/// Totals of all, and of each what recording_info() has of one.
nlohmann::ordered_json machine_info(const MachineFile& machine);

}  // namespace citcat
