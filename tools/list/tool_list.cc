// All tools of the program.

#include "tools/list/tool_list.h"

#include <algorithm>
#include <utility>

#include "formats/io/error.h"
#include "tools/export/exporter_list.h"
#include "tools/plugin/plugin_row.h"

namespace citcat::tools {

// Each is defined in a file of its own. Declared here, because nothing else may use them directly.
extern const ToolRow kNullTool;
extern const ToolRow kCountTool;
extern const ToolRow kBpredTool;
extern const ToolRow kCacheTool;
extern const ToolRow kBranchesTool;
extern const ToolRow kStringsTool;
extern const ToolRow kFootprintTool;
extern const ToolRow kCoverageTool;
extern const ToolRow kMemoryTool;
extern const ToolRow kIoTool;
extern const ToolRow kEventsTool;
extern const ToolRow kWatchTool;
extern const ToolRow kTlbTool;
extern const ToolRow kReuseTool;
extern const ToolRow kTimelineTool;
extern const ToolRow kBbvTool;
extern const ToolRow kOperandsTool;
extern const ToolRow kPowerTool;
extern const ToolRow kIlpTool;

extern const ToolRow kSyscallsTool;
extern const ToolRow kCallsTool;
extern const ToolRow kFuncTool;
extern const ToolRow kSwitchesTool;
extern const ToolRow kMdlTool;

extern const ToolRow kMapTool;
extern const ToolRow kMomentsTool;
extern const ToolRow kTreeTool;

const std::vector<const ToolRow*>& tool_list() {
  static const std::vector<const ToolRow*> tools{
      &kCountTool,    &kOperandsTool, &kStringsTool,   &kBranchesTool, &kBpredTool,    &kCacheTool,
      &kTlbTool,      &kReuseTool,    &kFootprintTool, &kMemoryTool,   &kSyscallsTool, &kCallsTool,
      &kFuncTool,     &kSwitchesTool, &kIoTool,        &kEventsTool,   &kIlpTool,      &kPowerTool,
      &kCoverageTool, &kBbvTool,      &kTimelineTool,  &kMomentsTool,  &kMapTool,      &kTreeTool,
      &kWatchTool,    &kMdlTool,      &kNullTool,
  };
  return tools;
}

const ToolRow* find_tool(const std::string& name) {
  if (const ToolRow* const plugin = find_plugin_tool(name)) return plugin;
  const auto& tools = tool_list();
  const auto found =
      std::find_if(tools.begin(), tools.end(), [&](const ToolRow* t) { return name == t->name; });
  return found != tools.end() ? *found : find_exporter_tool(name);
}

std::vector<ToolRequest> find_tools(std::vector<ToolOptions> options) {
  std::vector<ToolRequest> requests;
  for (ToolOptions& o : options) {
    const std::string name = o.tool();
    const ToolRow* const row = find_tool(name);
    if (row == nullptr) throw UsageError("--tool: no such tool: " + name + "; see --list-tools");
    requests.push_back({row, std::move(o), find_exporter_tool(name) == row});
  }
  return requests;
}

}  // namespace citcat::tools
