#pragma once
// `analyze` of several processors together: the tools that none of them can answer alone.

#include <optional>
#include <string>
#include <vector>

#include "cli/analysis/analysis_output.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "replay/verify/comparison_policy.h"

namespace citcat {

/// Whether any of the tools asked for is one of these: "sharing", "races", with ":top=N" or not.
bool asks_of_all_processors(const std::vector<std::string>& names);

/// `--tool sharing:help`, `--tool races:help`. False for a tool of one processor.
bool describe_tool_of_all(const std::string& name, const Console& console);

struct MachineAnalysisArguments {
  std::string recording;
  std::vector<std::string> tools;
  std::vector<std::string> symbols;  ///< files of names, beside those that the recording keeps
  std::optional<ComparisonPolicy> policy;  ///< nullopt: nothing is compared with the evidence
  AnalysisFormat format = AnalysisFormat::text;
};

/// Replays the processors of a recording together. UsageError where it has one processor, or where
/// other tools are among those asked for.
ExitCode analyze_processors(const MachineAnalysisArguments& arguments, const Console& console);

}  // namespace citcat
