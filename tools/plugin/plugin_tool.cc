#include "tools/plugin/plugin_tool.h"

#include "formats/io/error.h"
#include "tools/plugin/plugin_state.h"

namespace citcat::tools {

PluginTool::PluginTool(std::shared_ptr<const PluginLibrary> library, ToolOptions& options,
                       const PluginSetup& setup)
    : options_(options),
      setup_(setup),
      instance_(std::move(library), options, setup),
      execution_(instance_.calls().wants) {}

void* PluginTool::code(const StaticBlock& block) {
  Code& code = *code_.emplace_back(std::make_unique<Code>(block));
  code.mine = instance_.code(code.block.c());
  return &code;
}

void PluginTool::run(void* mine, const Execution& execution, const Context& context) {
  const Code& code = *static_cast<Code*>(mine);
  instance_.run(code.mine, execution_.make(execution, code.block.c(), context));
}

void PluginTool::accesses(std::span<const OtherAccess> accesses, const Context& context) {
  if (const citcat_accesses* const c = execution_.make(accesses, context)) instance_.accesses(*c);
}

void PluginTool::counted(void* mine, std::uint64_t executions) {
  instance_.counted(static_cast<Code*>(mine)->mine, executions);
}

void PluginTool::iterated(void* mine, std::uint64_t begun, std::uint64_t further) {
  instance_.iterated(static_cast<Code*>(mine)->mine, begun, further);
}

void PluginTool::interrupted(void* mine, std::uint64_t times) {
  instance_.interrupted(static_cast<Code*>(mine)->mine, times);
}

void PluginTool::event(const MachineEvent& event, const Context& context) {
  if (const auto c = plugin_event(event, context)) instance_.event(*c);
}

std::unique_ptr<Tool> PluginTool::part() const {
  ToolOptions options = options_;
  return std::make_unique<PluginTool>(instance_.library(), options, setup_);
}

void PluginTool::follow(Tool&& later) {
  auto& other = static_cast<PluginTool&>(later);
  if (failure_.empty()) failure_ = other.failure_;
  if (failure_.empty()) instance_.follow(other.instance_);
}

void PluginTool::save(ByteWriter& out) const {
  PluginState state;
  state.failure = failure_;
  if (failure_.empty()) state.bytes = instance_.save();
  state.write(out);
}

void PluginTool::load(ByteReader& in) {
  const PluginState state = PluginState::read(in);
  failure_ = state.failure;
  if (failure_.empty()) instance_.load(state.bytes);
}

void PluginTool::report(Report& report) const {
  try {
    if (failure_.empty()) report = instance_.report();
  } catch (const Error& e) {
    failure_ = e.what();
  }
  if (!failure_.empty()) report.value("error", "Error", failure_);
}

}  // namespace citcat::tools
