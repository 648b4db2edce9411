#include "cli/analysis/analysis_output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "cli/divergence_report.h"
#include "cli/parsing/suggestion.h"
#include "formats/io/error.h"
#include "tools/host/report_renderers.h"
#include "tools/list/tool_list.h"
#include "tools/plugin/plugin_row.h"

namespace citcat {

namespace {

/// Which figures are of windows alone, and what these are.
void add_sample(const AppliedSample& sample, const tools::Analysis& analysis, tools::Report& head) {
  tools::Report& group = head.group("sample", "samples");
  group.value("plan", "windows", sample.plan);
  group.value("windows", "number of windows", sample.share.windows);
  group.value("instructions", "instructions in them", sample.share.instructions);
  group.value("warming", "instructions before them, which do not count", sample.share.warming);
  group.value("of", "instructions in the part of the run", sample.of);
  tools::Table& table = group.table("tools", "what is a sample: only of these windows",
                                    {{"tool", "tool", ""},
                                     {"figures", "its figures", ""},
                                     {"sampled", "samples among them", ""}});
  constexpr const char* kWhich[] = {"exact", "exact in part", "sample"};
  for (const auto& [tool, sampled] : analysis.sampled()) {
    table.row({tool, std::string(kWhich[static_cast<std::size_t>(sampled.which)]), sampled.names});
  }
}

tools::Report head_of(const tools::Analysis& analysis, std::uint64_t from, std::uint64_t to,
                      const ReplayReport& report, const std::optional<AppliedSample>& sample) {
  tools::Report head;
  const std::uint64_t instructions = to > from ? to - from : 0;
  head.value("instructions", "instructions", instructions);
  head.value("from", "from", from);
  head.value("to", "to", to);
  head.value("end", "end", std::string(replay_end_name(report.end)));
  if (sample) add_sample(*sample, analysis, head);
  return head;
}

}  // namespace

nlohmann::ordered_json analysis_json(const tools::Analysis& analysis, std::uint64_t from,
                                     std::uint64_t to, const ReplayReport& report,
                                     const std::optional<AppliedSample>& sample) {
  tools::Report found;
  analysis.report(found);
  nlohmann::ordered_json json = tools::report_json(head_of(analysis, from, to, report, sample));
  json["divergence"] = divergence_json(report.divergence);
  const nlohmann::ordered_json tools = tools::report_json(found);
  json.update(tools);
  // With a single tool its keys also are at the top level.
  if (analysis.only_tool() != nullptr) {
    for (const auto& [key, value] : tools["tools"].front().items()) {
      if (!json.contains(key)) json[key] = value;
    }
  }
  return json;
}

void print_analysis(const tools::Analysis& analysis, std::uint64_t from, std::uint64_t to,
                    const ReplayReport& report, const std::optional<AppliedSample>& sample,
                    AnalysisFormat format, const Console& console) {
  if (format == AnalysisFormat::json) {
    console.print_json(analysis_json(analysis, from, to, report, sample));
    return;
  }
  const tools::Report head = head_of(analysis, from, to, report, sample);
  tools::Report found;
  analysis.report(found);
  if (format == AnalysisFormat::csv) {
    print_csv(head, "run", console);
    console.print("\n");
    print_csv(found, "run", console);
  } else {
    console.print(tools::report_text(head));
    console.print(tools::report_text(found));
  }
}

void print_csv(const tools::Report& report, const std::string& path, const Console& console) {
  console.print(tools::report_csv(report, path));
  const std::uint64_t formulas = tools::formula_fields(report);
  if (formulas == 0) return;
  console.warn(
      fmt::format("{} fields of the CSV begin with = + - or @, which a spreadsheet takes "
                  "for formulas: have it read them as text",
                  formulas));
}

void list_tools(bool json, const Console& console) {
  if (json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const tools::ToolRow* tool : tools::tool_list()) {
      all.push_back({{"name", tool->name},
                     {"summary", tool->summary},
                     {"merges", tool->merging == tools::ToolRow::Merging::exact}});
    }
    console.print_json(all);
    return;
  }
  for (const tools::ToolRow* tool : tools::tool_list()) {
    console.print(fmt::format("{:<12} {}\n", tool->name, tool->summary));
  }
}

namespace {

void describe(const std::string& name, const std::string& summary, const std::string& options,
              bool merges, const std::string& example, const Console& console) {
  console.print(fmt::format("{}: {}\n", name, summary));
  if (!options.empty()) {
    console.print("\nOptions\n");
    std::istringstream lines(options);
    for (std::string line; std::getline(lines, line);) console.print("  " + line + "\n");
  }
  console.print(fmt::format(
      "\n{}\n\nExample\n  {}\n",
      merges ? "Parts of a run can be analysed separately, with the same result (--jobs, --shard)."
             : "This tool follows the run as a whole: --jobs has no effect.",
      example));
}

}  // namespace

void require_tool(const std::string& name) {
  if (tools::find_tool(name) != nullptr) return;
  std::vector<std::string> known;
  for (const tools::ToolRow* const row : tools::tool_list()) known.emplace_back(row->name);
  throw UsageError("--tool: there is no tool " + name + did_you_mean(name, known) +
                   "; see --list-tools");
}

void describe_tool(const std::string& name, std::optional<std::chrono::milliseconds> isolate,
                   const Console& console) {
  if (tools::names_plugin(name)) {
    const tools::PluginDescription d = tools::describe_plugin(name, isolate);
    return describe(d.name, d.summary, d.options, d.merges,
                    "citcat analyze boot.citcat --tool " + name, console);
  }
  require_tool(name);
  const tools::ToolRow* const tool = tools::find_tool(name);
  describe(tool->name, tool->summary, tool->options,
           tool->merging == tools::ToolRow::Merging::exact, tool->example, console);
}

bool told_of_failures(const tools::Analysis& analysis, const Console& console) {
  const std::vector<std::string> failures = analysis.failures();
  for (const std::string& failure : failures) console.error(failure);
  return !failures.empty();
}

}  // namespace citcat
