#include "tools/plugin/plugin_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <ios>
#include <string_view>

#include "formats/io/error.h"

namespace citcat::tools {

namespace {

/// The part that every version of the structure has; the version is read from it before anything
/// else is believed.
constexpr std::uint32_t kSmallest = offsetof(citcat_tool, version) + sizeof(std::uint32_t);

/// The first bytes of every ELF file (System V ABI, ELF header, e_ident).
constexpr std::string_view kElfMagic =
    "\x7f"
    "ELF";

/// dlopen() looks for names without a slash where libraries are installed.
std::string as_file(const std::string& path) {
  return path.find('/') == std::string::npos ? "./" + path : path;
}

bool is_key(const char* name) {
  if (name == nullptr) return false;
  const std::string_view text = name;
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

bool names_plugin(const std::string& tool) {
  return tool.find('/') != std::string::npos || tool.ends_with(".so");
}

void require_shared_object(const std::string& path) {
  std::ifstream file(as_file(path), std::ios::binary);
  if (!file) throw IoError("--tool " + path + ": cannot open: " + std::strerror(errno));
  std::string head(kElfMagic.size(), '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (!file || head != kElfMagic) {
    throw FormatError(path, 0, "expected a shared object, found something else");
  }
}

PluginLibrary::PluginLibrary(const std::string& path) : path_(path) {
  require_shared_object(path);
  handle_ = ::dlopen(as_file(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const char* const given = ::dlerror();
    throw UsageError("--tool " + path +
                     ": cannot be loaded: " + (given != nullptr ? given : "no reason given"));
  }
  try {
    const auto entry =
        reinterpret_cast<decltype(&citcat_tool_v1)>(::dlsym(handle_, "citcat_tool_v1"));
    if (entry == nullptr) {
      throw UsageError("--tool " + path +
                       ": exports no citcat_tool_v1(), so it is not a tool for version " +
                       std::to_string(CITCAT_TOOL_VERSION) + " of citcat_tool.h");
    }
    read(entry());
  } catch (...) {
    ::dlclose(handle_);
    throw;
  }
}

PluginLibrary::~PluginLibrary() { ::dlclose(handle_); }

PluginDescription PluginLibrary::description() const {
  const auto text = [](const char* given) { return std::string(given != nullptr ? given : ""); };
  PluginDescription d;
  d.name = tool_.name;
  d.summary = text(tool_.summary);
  d.options = text(tool_.options);
  d.wants = tool_.wants;
  d.merges = tool_.merge != nullptr && tool_.save != nullptr && tool_.load != nullptr;
  return d;
}

void PluginLibrary::read(const citcat_tool* exported) {
  const std::string where = "--tool " + path_ + ": ";
  if (exported == nullptr) throw UsageError(where + "citcat_tool_v1() returned NULL");
  if (exported->size < kSmallest) {
    throw UsageError(where + "expected a citcat_tool of at least " + std::to_string(kSmallest) +
                     " bytes, found one of " + std::to_string(exported->size));
  }
  if (exported->version != CITCAT_TOOL_VERSION) {
    throw UsageError(where + "expected a tool of version " + std::to_string(CITCAT_TOOL_VERSION) +
                     " of citcat_tool.h, found one of version " +
                     std::to_string(exported->version));
  }
  std::memcpy(&tool_, exported, std::min<std::size_t>(exported->size, sizeof tool_));
  if (!is_key(tool_.name)) {
    throw UsageError(where +
                     "expected a name of lower case letters, digits and underscores, found " +
                     (tool_.name != nullptr ? tool_.name : "NULL"));
  }
  if (tool_.make == nullptr || tool_.destroy == nullptr || tool_.report == nullptr) {
    throw UsageError(where + "the tool lacks make(), destroy() or report()");
  }
}

}  // namespace citcat::tools
