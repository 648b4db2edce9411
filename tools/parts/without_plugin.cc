// Stand-ins for tools in shared objects, which are the part "plugin".

#include "formats/io/error.h"
#include "tools/parts/absent_tool.h"
#include "tools/plugin/plugin_row.h"
#include "tools/plugin/plugin_server.h"

namespace citcat::tools {

namespace {

constexpr char kPluginPart[] = "plugin";
const ToolRow kAbsentPluginTool = absent_tool<kPluginPart>("FILE");

}  // namespace

bool names_plugin(const std::string& tool) {
  return tool.find('/') != std::string::npos || tool.ends_with(".so");
}

const ToolRow* find_plugin_tool(const std::string& name) {
  return names_plugin(name) ? &kAbsentPluginTool : nullptr;
}

PluginDescription describe_plugin(const std::string& path,
                                  std::optional<std::chrono::milliseconds>) {
  throw UsageError("--tool " + path + ": this build was made without the part \"" + kPluginPart +
                   "\"; configure it with CITCAT_PARTS=all");
}

std::optional<int> serve_plugin(int, char**) { return std::nullopt; }

}  // namespace citcat::tools
