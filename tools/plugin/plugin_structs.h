#pragma once
// Converts the reports for tools in C++ to those for tools in C (citcat_tool.h).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/host/tool.h"
#include "tools/plugin/citcat_tool.h"

namespace citcat::tools {

/// A StaticBlock in C, with what its pointers lead to.
class PluginBlock {
 public:
  explicit PluginBlock(const StaticBlock& block);
  PluginBlock(const PluginBlock&) = delete;
  PluginBlock& operator=(const PluginBlock&) = delete;
  const citcat_block& c() const { return c_; }

 private:
  std::vector<std::string> mnemonics_;
  std::vector<citcat_instruction> instructions_;
  citcat_block c_{};
};

/// Makes what runs and is accessed into structures in C, again and again in the same memory. What a
/// tool did not ask for is left out, also where the host tells it for another's sake.
class PluginExecution {
 public:
  explicit PluginExecution(std::uint32_t wants) : wants_(wants) {}
  /// Valid until the next call. `block` is that of the execution.
  const citcat_execution& make(const Execution& execution, const citcat_block& block,
                               const Context& context);
  /// The same; null where none of them was asked for.
  const citcat_accesses* make(std::span<const OtherAccess> accesses, const Context& context);

 private:
  bool wants(std::uint32_t any_of) const { return (wants_ & any_of) != 0; }
  bool wants(const Reference& r) const {
    return wants(CITCAT_WANTS_WALKS) || r.kind != AccessKind::walk;
  }
  citcat_reference reference(const Reference& r) const;

  std::uint32_t wants_;  ///< of enum citcat_wants
  std::vector<std::uint64_t> addresses_;
  std::vector<citcat_reference> references_;
  citcat_execution c_{};
  citcat_accesses accesses_{};
};

/// nullopt for events that tools in C do not receive.
std::optional<citcat_tool_event> plugin_event(const MachineEvent& event, const Context& context);

/// Converts the bits of enum citcat_wants and ignores unknown ones.
Wants plugin_wants(std::uint32_t wants);

}  // namespace citcat::tools
