#pragma once
// The other end of plugin_process.h: what the program does when it is the process of a tool.

#include <optional>
#include <string>
#include <vector>

#include "tools/host/tool_options.h"
#include "tools/plugin/plugin_instance.h"

namespace citcat::tools {

/// What PluginProcess is to be given, so that the process holds a tool with these options.
std::vector<std::string> plugin_arguments(const ToolOptions& options, const PluginSetup& setup);
/// So that the process only says what the tool is.
std::vector<std::string> plugin_arguments(const std::string& path);

/// The exit status, where the program was started as the process of a tool; nullopt where it was
/// not. To be asked before anything else is made of the arguments.
std::optional<int> serve_plugin(int argc, char** argv);

}  // namespace citcat::tools
