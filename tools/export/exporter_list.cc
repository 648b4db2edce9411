// All exporters of the program.

#include "tools/export/exporter_list.h"

#include <algorithm>
#include <sstream>
#include <string_view>

namespace citcat::tools {

// Each is defined in a file of its own. Declared here, because nothing else may use them directly.
extern const ToolRow kKtTool;
extern const ToolRow kIdtraceTool;
extern const ToolRow kDrmemtraceTool;
extern const ToolRow kChampsimTool;
extern const ToolRow kDinTool;
extern const ToolRow kLackeyTool;
extern const ToolRow kTenetTool;
extern const ToolRow kSimpointTool;
extern const ToolRow kCallgrindTool;
extern const ToolRow kFoldedTool;
extern const ToolRow kSpeedscopeTool;
extern const ToolRow kPprofTool;
extern const ToolRow kPerfettoTool;
extern const ToolRow kDrcovTool;
extern const ToolRow kLcovTool;

const std::vector<ExporterRow>& exporter_list() {
  static const std::vector<ExporterRow> exporters{
      {&kKtTool, "", ""},
      {&kIdtraceTool, ".trc .cnt .blk", "level=3"},
      {&kDrmemtraceTool, ".drmemtrace", "", join_drmemtrace},
      {&kChampsimTool, ".champsim", ""},
      {&kDinTool, ".din", ""},
      {&kLackeyTool, ".lackey", ""},
      {&kTenetTool, ".tenet", ""},
      {&kSimpointTool, ".bb", ""},
      {&kCallgrindTool, ".callgrind", ""},
      {&kFoldedTool, ".folded", ""},
      {&kSpeedscopeTool, ".speedscope.json", ""},
      {&kPprofTool, ".pprof", ""},
      {&kPerfettoTool, ".perfetto-trace", ""},
      {&kDrcovTool, ".drcov", ""},
      {&kLcovTool, ".info", ""},
  };
  return exporters;
}

const ExporterRow* find_exporter(const std::string& name) {
  const auto& rows = exporter_list();
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const ExporterRow& r) { return name == r.tool->name; });
  return found != rows.end() ? &*found : nullptr;
}

const ToolRow* find_exporter_tool(const std::string& name) {
  const ExporterRow* const row = find_exporter(name);
  return row != nullptr ? row->tool : nullptr;
}

const ExporterRow* exporter_of_path(const std::string& path) {
  constexpr std::string_view kCompressed = ".zst";
  std::string_view name = path;
  if (name.ends_with(kCompressed)) name.remove_suffix(kCompressed.size());
  for (const ExporterRow& row : exporter_list()) {
    std::istringstream endings(row.endings);
    for (std::string ending; endings >> ending;) {
      if (name.ends_with(ending)) return &row;
    }
  }
  return nullptr;
}

}  // namespace citcat::tools
