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

// Of those whose result is a file (tools/export/exporter_list.h); null where there is none of that name.
const ToolRow* find_exporter_tool(const std::string& name);

const std::vector<const ToolRow*>& tool_list() {
  static const std::vector<const ToolRow*> tools{
      &kCountTool,     &kBpredTool,    &kCacheTool,  &kBranchesTool, &kStringsTool,
      &kFootprintTool, &kCoverageTool, &kMemoryTool, &kIoTool,       &kEventsTool,
      &kWatchTool,     &kNullTool,
  };
  return tools;
}

const ToolRow* find_tool(const std::string& name) {
  const auto& tools = tool_list();
  const auto found = std::find_if(tools.begin(), tools.end(),
                                  [&](const ToolRow* t) { return name == t->name; });
  return found != tools.end() ? *found : find_exporter_tool(name);
}

}  // namespace citcat::tools
