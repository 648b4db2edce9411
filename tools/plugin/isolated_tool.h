#pragma once
// `--isolate`: a tool in a shared object, in a process of its own.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tools/host/tool.h"
#include "tools/plugin/plugin_instance.h"
#include "tools/plugin/plugin_process.h"
#include "tools/plugin/plugin_structs.h"

namespace citcat::tools {

/// Anything that the tool does to its process is only a failure() here: the tool receives nothing
/// from then on, and its report says so.
class IsolatedTool final : public Tool {
 public:
  /// Throws UsageError where the tool refuses its options.
  IsolatedTool(ToolOptions options, const PluginSetup& setup, std::chrono::milliseconds limit);

  std::string name() const override { return about_.name; }
  bool merges() const override { return about_.merges; }
  Wants wants() const override { return plugin_wants(about_.wants); }
  void* code(const StaticBlock& block) override;
  void run(void* mine, const Execution& execution, const Context& context) override;
  void accesses(std::span<const OtherAccess> accesses, const Context& context) override;
  void counted(void* mine, std::uint64_t executions) override;
  void iterated(void* mine, std::uint64_t begun, std::uint64_t further) override;
  void interrupted(void* mine, std::uint64_t times) override;
  void event(const MachineEvent& event, const Context& context) override;
  std::unique_ptr<Tool> part() const override;
  void follow(Tool&& later) override;
  void save(ByteWriter& out) const override;
  void load(ByteReader& in) override;
  void report(Report& report) const override;
  std::string failure() const override { return failure_; }

 private:
  struct Code {
    Code(const StaticBlock& b, std::uint64_t n) : block(b), number(n) {}
    PluginBlock block;
    std::uint64_t number;  ///< by which the tool's process knows it
  };

  /// Does what talks to the process, unless that failed before or does now.
  template <class Talk>
  void attempt(Talk&& talk) const;
  void send_counts(PluginMessage kind, void* mine, std::uint64_t executions,
                   std::uint64_t further = 0);
  void send_state(std::span<const std::uint8_t> state, PluginMessage use);

  ToolOptions options_;
  PluginSetup setup_;
  std::chrono::milliseconds limit_;
  std::unique_ptr<PluginProcess> process_;
  PluginDescription about_;
  mutable std::string failure_;
  PluginExecution execution_{0};
  std::vector<std::unique_ptr<Code>> code_;
};

}  // namespace citcat::tools
