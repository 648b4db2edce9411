#pragma once
// What tools in C++ are told, as tools in C see it (citcat_tool.h).

#include <cstdint>
#include <vector>

#include "tools/plugin/citcat_tool.h"
#include "tools/host/tool.h"

namespace citcat::tools {

/// A StaticBlock in C. Keeps what its pointers lead to.
class PluginBlock {
 public:
  explicit PluginBlock(const StaticBlock& block);
  PluginBlock(const PluginBlock&) = delete;
  PluginBlock& operator=(const PluginBlock&) = delete;
  const citcat_block& c() const { return c_; }

 private:
  std::vector<citcat_instruction> instructions_;
  citcat_block c_{};
};

/// Makes an Execution into one in C, again and again in the same memory.
class PluginExecution {
 public:
  explicit PluginExecution(std::uint32_t wants) : wants_(wants) {}
  /// Valid until the next call. `block` is that of the execution.
  const citcat_execution& make(const Execution& execution, const citcat_block& block,
                               const Context& context);

 private:
  std::uint32_t wants_;  ///< of enum citcat_wants
  std::vector<std::uint64_t> addresses_;
  std::vector<citcat_reference> references_;
  citcat_execution c_{};
};

citcat_tool_event plugin_event(const MachineEvent& event, const Context& context);

/// Of the bits of enum citcat_wants; those that it has not are ignored.
Wants plugin_wants(std::uint32_t wants);

}  // namespace citcat::tools
