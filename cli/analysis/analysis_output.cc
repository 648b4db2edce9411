#include "cli/analysis/analysis_output.h"

#include <fmt/format.h>

#include "cli/divergence_report.h"
#include "formats/io/error.h"
#include "tools/host/report_renderers.h"
#include "tools/host/tool_list.h"

namespace citcat {

void print_analysis(const tools::Analysis& analysis, std::uint64_t from, std::uint64_t to,
                    const ReplayReport& report, AnalysisFormat format, const Console& console) {
  tools::Report head;
  const std::uint64_t instructions = to > from ? to - from : 0;
  head.value("instructions", "instructions", instructions);
  head.value("from", "from", from);
  head.value("to", "to", to);
  head.value("end", "end", std::string(replay_end_name(report.end)));
  tools::Report found;
  analysis.report(found);
  switch (format) {
    case AnalysisFormat::json: {
      nlohmann::ordered_json json = tools::report_json(head);
      json["divergence"] = divergence_json(report.divergence);
      const nlohmann::ordered_json tools = tools::report_json(found);
      json.update(tools);
      // Of one tool alone its keys stand here too.
      if (analysis.only_tool() != nullptr) {
        for (const auto& [key, value] : tools["tools"].front().items()) {
          if (!json.contains(key)) json[key] = value;
        }
      }
      console.print_json(json);
      break;
    }
    case AnalysisFormat::csv:
      console.print(tools::report_csv(head, "run") + "\n" + tools::report_csv(found, "run"));
      break;
    case AnalysisFormat::text:
      console.print(tools::report_text(head));
      console.print(tools::report_text(found));
      break;
  }
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

void describe_tool(const std::string& name, const Console& console) {
  const tools::ToolRow* const tool = tools::find_tool(name);
  if (tool == nullptr) {
    throw UsageError("--tool: no such tool: " + name + "; see --list-tools");
  }
  console.print(fmt::format("{}: {}\n", tool->name, tool->summary));
  if (*tool->options != '\0') {
    console.print("\nOptions\n");
    std::string line;
    for (const char* c = tool->options; *c != '\0'; ++c) {
      if (*c != '\n') {
        line += *c;
        continue;
      }
      console.print("  " + line + "\n");
      line.clear();
    }
  }
  console.print(fmt::format("\n{}\n\nExample\n  {}\n",
                            tool->merging == tools::ToolRow::Merging::exact
                                ? "Parts of a run are put together exactly (--jobs, --shard)."
                                : "The run is told as a whole: --jobs has no effect on it.",
                            tool->example));
}

}  // namespace citcat
