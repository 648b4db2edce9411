#pragma once
// The row for tools in shared objects in the list of tools.

#include <chrono>
#include <optional>
#include <string>

#include "tools/plugin/plugin_library.h"

namespace citcat::tools {

struct ToolRow;

/// The row of all tools in files; null where `name` is not the name of a file.
const ToolRow* find_plugin_tool(const std::string& name);

/// What the tool in a file says of itself. `isolate`: as Setup::isolate. Throws UsageError as
/// PluginLibrary, Error where its process fails.
PluginDescription describe_plugin(const std::string& path,
                                  std::optional<std::chrono::milliseconds> isolate);

}  // namespace citcat::tools
