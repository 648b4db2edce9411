// callgrind: a profile for callgrind_annotate and KCachegrind. Format, version and source:
// docs/export/callgrind.md.

#include <fmt/format.h>

#include <map>

#include "tools/export/profile_exporters.h"

namespace citcat::tools {
namespace {

/// Functions are told apart by what they are and where, not by who called them.
using Function = std::pair<CallPaths::Kind, std::uint32_t>;

struct Call {
  std::uint64_t times = 0, cost = 0;
};
struct Cost {
  std::uint64_t self = 0;
  std::map<Function, Call> calls;
};

Function function_of(const CallPaths::Node& node) { return {node.kind, node.value}; }

std::string name_of(const Function& function) {
  CallPaths::Node node;
  node.kind = function.first;
  node.value = function.second;
  return CallPaths::name(node);
}

class CallgrindTool final : public ProfileTool {
 public:
  using ProfileTool::ProfileTool;
  std::unique_ptr<Tool> part() const override {
    return part_of_profile<CallgrindTool>(file(), command());
  }

 private:
  void write(const CallPaths& paths) override {
    std::map<Function, Cost> costs;
    const std::vector<std::uint64_t> inclusive = inclusive_of(paths);
    for (std::uint32_t n = 1; n < paths.nodes().size(); ++n) {
      const CallPaths::Node& node = paths.nodes()[n];
      costs[function_of(node)].self += node.self;
      if (node.parent == CallPaths::kRoot) continue;
      Call& call = costs[function_of(paths.nodes()[node.parent])].calls[function_of(node)];
      call.times += node.entered;
      call.cost += inclusive[n];
    }
    file().write(fmt::format("# callgrind format\nversion: 1\ncreator: citcat\ncmd: {}\n"
                             "positions: line\nevents: Ir\nsummary: {}\n\n",
                             command(), inclusive[CallPaths::kRoot]));
    for (const auto& [function, cost] : costs) write_function(function, cost);
    file().write(fmt::format("\ntotals: {}\n", inclusive[CallPaths::kRoot]));
  }

  /// No source is known, so that every line is 0.
  void write_function(const Function& function, const Cost& cost) {
    file().write(fmt::format("fl=recorded code\nfn={}\n0 {}\n", name_of(function), cost.self));
    for (const auto& [callee, call] : cost.calls) {
      file().write(
          fmt::format("cfn={}\ncalls={} 0\n0 {}\n", name_of(callee), call.times, call.cost));
    }
  }
};

}  // namespace

extern const ToolRow kCallgrindTool{"callgrind",
                                    "Write a profile for callgrind_annotate and KCachegrind",
                                    kProfileOptions,
                                    "citcat replay boot.citcat -o boot.callgrind",
                                    ToolRow::Merging::serial,
                                    make_profile<CallgrindTool>};

}  // namespace citcat::tools
