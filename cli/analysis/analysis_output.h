#pragma once
// Prints the results of an analysis.

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cli/analysis/analysis_run.h"
#include "cli/console.h"
#include "replay/session/replayer.h"
#include "tools/host/analysis.h"

namespace citcat {

enum class AnalysisFormat : std::uint8_t { text, json, csv };

/// As `analyze --json` prints it, of the instructions [from, to).
nlohmann::ordered_json analysis_json(const tools::Analysis& analysis, std::uint64_t from,
                                     std::uint64_t to, const ReplayReport& report,
                                     const std::optional<AppliedSample>& sample);
/// The same in any form.
void print_analysis(const tools::Analysis& analysis, std::uint64_t from, std::uint64_t to,
                    const ReplayReport& report, const std::optional<AppliedSample>& sample,
                    AnalysisFormat format, const Console& console);

/// A report as tables of CSV. Warns of fields that a spreadsheet would take for formulas: names
/// come from files.
void print_csv(const tools::Report& report, const std::string& path, const Console& console);

/// --list-tools: names and summaries; as JSON an array.
void list_tools(bool json, const Console& console);
/// Throws UsageError, which names the nearest tool, if there is no tool of that name.
void require_tool(const std::string& name);
/// --tool NAME:help. `isolate`: as Setup::isolate. Throws UsageError where there is no such tool.
void describe_tool(const std::string& name, std::optional<std::chrono::milliseconds> isolate,
                   const Console& console);
/// Says which tools have not done what they were to do (Analysis::failures()). True where there are
/// any.
bool told_of_failures(const tools::Analysis& analysis, const Console& console);

}  // namespace citcat
