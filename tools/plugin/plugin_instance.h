#pragma once
// A tool from a plug-in at work, in whichever process it runs.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tools/host/report.h"
#include "tools/host/tool_options.h"
#include "tools/plugin/citcat_tool.h"
#include "tools/plugin/plugin_library.h"

namespace citcat::tools {

/// What a tool receives when it is made.
struct PluginSetup {
  std::uint64_t from = 0;       ///< first instruction that it sees
  bool begins = true;           ///< nothing was reported before
  std::uint64_t ram_bytes = 0;  ///< 0: not known
};

class PluginInstance {
 public:
  /// Throws UsageError where the tool refuses, with its reason, and for options that it did not ask
  /// for.
  PluginInstance(std::shared_ptr<const PluginLibrary> library, ToolOptions& options,
                 const PluginSetup& setup);
  ~PluginInstance();
  PluginInstance(const PluginInstance&) = delete;
  PluginInstance& operator=(const PluginInstance&) = delete;

  const citcat_tool& calls() const { return library_->tool(); }
  const std::shared_ptr<const PluginLibrary>& library() const { return library_; }

  /// As the functions of citcat_tool, which may be NULL.
  void* code(const citcat_block& block) {
    return calls().code ? calls().code(tool_, &block) : nullptr;
  }
  void run(void* mine, const citcat_execution& execution) {
    if (calls().run) calls().run(tool_, mine, &execution);
  }
  void accesses(const citcat_accesses& accesses) {
    if (calls().accesses) calls().accesses(tool_, &accesses);
  }
  void counted(void* mine, std::uint64_t executions) {
    if (calls().counted) calls().counted(tool_, mine, executions);
  }
  void iterated(void* mine, std::uint64_t begun, std::uint64_t further) {
    if (calls().iterated) calls().iterated(tool_, mine, begun, further);
  }
  void interrupted(void* mine, std::uint64_t times) {
    if (calls().interrupted) calls().interrupted(tool_, mine, times);
  }
  void event(const citcat_tool_event& event) {
    if (calls().event) calls().event(tool_, &event);
  }
  /// For a tool that merges (PluginDescription), as are the next two.
  void follow(PluginInstance& later) { calls().merge(tool_, later.tool_); }
  std::vector<std::uint8_t> save() const;
  /// Throws FormatError for bytes that the tool refuses.
  void load(std::span<const std::uint8_t> state);
  /// What the tool reports. Throws Error where its calls make no sense.
  Report report() const;

 private:
  std::shared_ptr<const PluginLibrary> library_;
  void* tool_ = nullptr;
};

}  // namespace citcat::tools
