#include "tools/plugin/plugin_row.h"

#include <memory>

#include "formats/io/error.h"
#include "tools/host/tool.h"
#include "tools/plugin/isolated_tool.h"
#include "tools/plugin/plugin_process.h"
#include "tools/plugin/plugin_server.h"
#include "tools/plugin/plugin_tool.h"

namespace citcat::tools {

namespace {

std::unique_ptr<Tool> make_plugin(ToolOptions& options, const Setup& setup) {
  const PluginSetup mine{setup.from, setup.begins, setup.machine.ram_bytes};
  if (!setup.isolate) {
    return std::make_unique<PluginTool>(std::make_shared<const PluginLibrary>(options.tool()),
                                        options, mine);
  }
  options.leave_to_other();
  return std::make_unique<IsolatedTool>(options, mine, *setup.isolate);
}

/// What it says of itself differs from file to file (describe_plugin()); whether parts of it are
/// put together, Tool::merges() says.
const ToolRow kPluginTool{"FILE", "A tool in a shared object", "",
                          "",     ToolRow::Merging::exact,     make_plugin};

}  // namespace

const ToolRow* find_plugin_tool(const std::string& name) {
  return names_plugin(name) ? &kPluginTool : nullptr;
}

PluginDescription describe_plugin(const std::string& path,
                                  std::optional<std::chrono::milliseconds> isolate) {
  if (!isolate) return PluginLibrary(path).description();
  try {
    PluginProcess process(path, plugin_arguments(path), *isolate);
    PluginDescription description = process.description();
    process.finish();
    return description;
  } catch (const PluginFailure& e) {
    throw Error(e.what());
  }
}

}  // namespace citcat::tools
