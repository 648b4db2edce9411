#pragma once
// `--tool ./mine.so`: a tool in a shared object, in this process.

#include <memory>
#include <string>
#include <vector>

#include "tools/host/tool.h"
#include "tools/plugin/plugin_instance.h"
#include "tools/plugin/plugin_structs.h"

namespace citcat::tools {

class PluginTool final : public Tool {
 public:
  /// Throws as PluginInstance.
  PluginTool(std::shared_ptr<const PluginLibrary> library, ToolOptions& options,
             const PluginSetup& setup);

  std::string name() const override { return instance_.calls().name; }
  bool merges() const override { return instance_.library()->description().merges; }
  Wants wants() const override { return plugin_wants(instance_.calls().wants); }
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
  /// A piece of code, and what the tool has for it.
  struct Code {
    explicit Code(const StaticBlock& b) : block(b) {}
    PluginBlock block;
    void* mine = nullptr;
  };

  ToolOptions options_;  ///< for parts
  PluginSetup setup_;
  PluginInstance instance_;
  PluginExecution execution_;
  mutable std::string failure_;
  std::vector<std::unique_ptr<Code>> code_;
};

}  // namespace citcat::tools
