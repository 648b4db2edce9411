#pragma once
// A shared object that holds a tool written by somebody else (citcat_tool.h).

#include <cstdint>
#include <string>

#include "tools/plugin/citcat_tool.h"

namespace citcat::tools {

/// The description of a tool, by itself.
struct PluginDescription {
  std::string name, summary, options;
  std::uint32_t wants = 0;  ///< of enum citcat_wants
  bool merges = false;      ///< parts of a run can be known to parts of it
};

/// Throws IoError where `path` cannot be opened, FormatError where it is no ELF file.
void require_shared_object(const std::string& path);

/// Loaded as long as it lives. What the object does when it is loaded, its constructors, it does in
/// this process.
class PluginLibrary {
 public:
  /// Throws as require_shared_object(), and UsageError, naming the file, for what cannot be loaded,
  /// exports no tool, or a tool of another version or without what every tool must have.
  explicit PluginLibrary(const std::string& path);
  ~PluginLibrary();
  PluginLibrary(const PluginLibrary&) = delete;
  PluginLibrary& operator=(const PluginLibrary&) = delete;

  const std::string& path() const { return path_; }
  /// What the object's own structure has; null where it ends before.
  const citcat_tool& tool() const { return tool_; }
  PluginDescription description() const;

 private:
  void read(const citcat_tool* exported);

  std::string path_;
  void* handle_ = nullptr;
  citcat_tool tool_{};
};

/// The text of `--tool` names a file and not a tool of the list: it has a slash, or ends in ".so".
bool names_plugin(const std::string& tool);

}  // namespace citcat::tools
