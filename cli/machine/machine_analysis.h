#pragma once
// `analyze` of several processors together: the tools that none of them can answer alone.

#include <string>
#include <vector>

#include "cli/analysis/analysis_output.h"
#include "cli/console.h"
#include "cli/exit_code.h"

namespace citcat {

/// Whether any of the tools asked for is one of these: "sharing", "races", with ":top=N" or not.
bool asks_of_all_processors(const std::vector<std::string>& names);

/// Replays the processors of a recording together. UsageError where it has one processor, or where
/// other tools are among those asked for.
/// `symbols`: files of names for the code, beside those that the recording keeps.
ExitCode analyze_processors(const std::string& recording, const std::vector<std::string>& names,
                            const std::vector<std::string>& symbols, AnalysisFormat format,
                            const Console& console);

}  // namespace citcat
