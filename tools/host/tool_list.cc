// All tools of the program.

#include "tools/host/tool_list.h"

#include <algorithm>

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

// The row of a tool whose result is a file (tools/export/exporter_list.h); null where there is none
// of that name.
const ToolRow* find_exporter_tool(const std::string& name);
// The row of a tool in a shared object (tools/plugin/plugin_row.cc); null where `name` is not the
// name of a file.
const ToolRow* find_plugin_tool(const std::string& name);

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

bool writes_file(const std::string& name) { return find_exporter_tool(name) != nullptr; }

}  // namespace citcat::tools
