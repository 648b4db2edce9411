// callgrind: a profile for callgrind_annotate and KCachegrind. Format, version and source:
// docs/export/callgrind.md.

#include <fmt/format.h>

#include <map>
#include <string>

#include "formats/text/printable_text.h"
#include "tools/export/profile_exporters.h"

namespace citcat::tools {
namespace {

/// Functions are distinguished by their names, not by who called them.
using Function = std::string;

struct Call {
  std::uint64_t times = 0, cost = 0;
};
struct Cost {
  std::uint64_t self = 0;
  std::map<Function, Call> calls;
};

/// A name after "fn=": one that begins like the number of another, "(12)", would be that one.
/// Source: Valgrind's "Callgrind Format Specification", name compression.
std::string function_text(const Function& name) {
  const std::size_t digits = name.find_first_not_of("0123456789", 1);
  const bool is_number =
      name[0] == '(' && digits != 1 && digits != std::string::npos && name[digits] == ')';
  return is_number ? "\\x28" + name.substr(1) : name;
}

class CallgrindTool final : public ProfileTool {
 public:
  using ProfileTool::ProfileTool;
  std::unique_ptr<Tool> part() const override {
    return part_of_profile<CallgrindTool>(file(), command(), names());
  }

 private:
  void write(const CallPaths& paths) override {
    std::map<Function, Cost> costs;
    const std::vector<std::uint64_t> inclusive = paths.inclusive();
    for (std::uint32_t n = 1; n < paths.nodes().size(); ++n) {
      const CallPaths::Node& node = paths.nodes()[n];
      const Function function = paths.name(node);
      costs[function].self += node.own;
      if (node.parent == CallPaths::kRoot) continue;
      Call& call = costs[paths.name(paths.nodes()[node.parent])].calls[function];
      call.times += node.entered;
      call.cost += inclusive[n];
    }
    file().write(
        fmt::format("# callgrind format\nversion: 1\ncreator: citcat\ncmd: {}\n"
                    "positions: line\nevents: Ir\nsummary: {}\n\n",
                    printable_text(command()), inclusive[CallPaths::kRoot]));
    for (const auto& [function, cost] : costs) write_function(function, cost);
    file().write(fmt::format("\ntotals: {}\n", inclusive[CallPaths::kRoot]));
  }

  /// No source is known, so that every line is 0.
  void write_function(const Function& function, const Cost& cost) {
    file().write(
        fmt::format("fl=recorded code\nfn={}\n0 {}\n", function_text(function), cost.self));
    for (const auto& [callee, call] : cost.calls) {
      file().write(
          fmt::format("cfn={}\ncalls={} 0\n0 {}\n", function_text(callee), call.times, call.cost));
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
