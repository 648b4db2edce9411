#pragma once
// All tools of the program, and tools in files.

#include <string>
#include <vector>

#include "tools/host/analysis.h"
#include "tools/host/tool.h"

namespace citcat::tools {

/// All tools, in the order of --list-tools.
const std::vector<const ToolRow*>& tool_list();
/// Null if there is no tool of that name. The name of a file has the row of all shared objects.
const ToolRow* find_tool(const std::string& name);
/// The tools that `options` name, for an Analysis. Throws UsageError for a name that no tool has.
std::vector<ToolRequest> find_tools(std::vector<ToolOptions> options);

}  // namespace citcat::tools
