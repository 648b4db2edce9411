#include "tools/plugin/plugin_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "formats/io/error.h"

namespace citcat::tools {

namespace {

/// Of every version of the structure: where a version is read before anything else is believed.
constexpr std::uint32_t kSmallest = offsetof(citcat_tool, version) + sizeof(std::uint32_t);

/// dlopen() looks for names without a slash where libraries are installed.
std::string as_file(const std::string& path) {
  return path.find('/') == std::string::npos ? "./" + path : path;
}

}  // namespace

bool names_plugin(const std::string& tool) {
  return tool.find('/') != std::string::npos || tool.ends_with(".so");
}

PluginLibrary::PluginLibrary(const std::string& path) : path_(path) {
  handle_ = ::dlopen(as_file(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const char* const why = ::dlerror();
    throw UsageError("--tool " + path + ": cannot be loaded: " + (why ? why : "no reason given"));
  }
  try {
    const auto entry = reinterpret_cast<decltype(&citcat_tool_v1)>(::dlsym(handle_, "citcat_tool_v1"));
    if (entry == nullptr) {
      throw UsageError("--tool " + path + ": exports no citcat_tool_v1(), so it is no tool for version " +
                       std::to_string(CITCAT_TOOL_VERSION) + " of citcat_tool.h");
    }
    read(entry());
  } catch (...) {
    ::dlclose(handle_);
    throw;
  }
}

PluginLibrary::~PluginLibrary() { ::dlclose(handle_); }

void PluginLibrary::read(const citcat_tool* exported) {
  const std::string where = "--tool " + path_ + ": ";
  if (exported == nullptr) throw UsageError(where + "citcat_tool_v1() returned NULL");
  if (exported->size < kSmallest) {
    throw UsageError(where + "expected a citcat_tool of at least " + std::to_string(kSmallest) +
                     " bytes, found one of " + std::to_string(exported->size));
  }
  if (exported->version != CITCAT_TOOL_VERSION) {
    throw UsageError(where + "expected a tool of version " + std::to_string(CITCAT_TOOL_VERSION) +
                     " of citcat_tool.h, found one of version " + std::to_string(exported->version));
  }
  std::memcpy(&tool_, exported, std::min<std::size_t>(exported->size, sizeof tool_));
  if (tool_.name == nullptr || *tool_.name == '\0') throw UsageError(where + "the tool has no name");
  if (tool_.make == nullptr || tool_.destroy == nullptr || tool_.report == nullptr) {
    throw UsageError(where + "the tool lacks make(), destroy() or report()");
  }
}

}  // namespace citcat::tools
