#pragma once
// Runs a command that is made for one processor once for each of several.

#include <cstddef>
#include <functional>
#include <string>

#include "cli/console.h"
#include "cli/exit_code.h"
#include "events/archive/machine_file.h"

namespace citcat {

/// The work for one processor. Takes its number, the name of its recording, and where it prints.
using WorkOfProcessor =
    std::function<ExitCode(std::size_t number, const std::string& name, const Console& console)>;

/// Runs `work` for each processor, in their order or, with more than one job, side by side in
/// processes of their own. What it prints as JSON becomes an item of one line
/// {"processors": [...]}; text is below "processor P". Returns the first exit code that is not
/// ok.
ExitCode for_each_processor(const MachineFile& machine, const Console& console, bool json,
                            unsigned jobs, const WorkOfProcessor& work);

/// The jobs that are left for each of them where `jobs` are shared among all.
int jobs_of_each(int jobs, const MachineFile& machine);

/// The file of one processor, where each writes one: "run.kt.zst" becomes "run.1.kt.zst".
std::string path_of_processor(const std::string& path, std::size_t processor);

}  // namespace citcat
