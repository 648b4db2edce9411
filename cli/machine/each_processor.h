#pragma once
// Runs a command that is made for one processor once for each of several.

#include <functional>
#include <string>

#include "cli/console.h"
#include "cli/exit_code.h"
#include "events/archive/machine_file.h"

namespace citcat {

/// Runs `work` for the recording of each processor, one after the other. What it prints as JSON
/// becomes an item of one line {"processors": [...]}; text stands below "processor P". Returns the
/// first exit code that is not ok.
ExitCode for_each_processor(
    const MachineFile& machine, const Console& console, bool json,
    const std::function<ExitCode(const std::string& name, const Console& console)>& work);

/// The file of one processor, where each writes one: "run.kt.zst" becomes "run.1.kt.zst".
std::string path_of_processor(const std::string& path, std::size_t processor);

}  // namespace citcat
