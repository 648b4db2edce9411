#pragma once

#include <string>
#include <vector>

#include "tools/host/tool.h"

namespace citcat::tools {

/// All tools, in the order of --list-tools.
const std::vector<const ToolRow*>& tool_list();
/// Null where there is none of that name. The name of a file has the row of all shared objects.
const ToolRow* find_tool(const std::string& name);
/// The result of that tool is a file.
bool writes_file(const std::string& name);

}  // namespace citcat::tools
