// calls: which procedure called which, how often, and how many instructions that took
// (docs/tools/calls.md).

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tools/analyses/call_tool.h"

namespace citcat::tools {
namespace {

class CallsTool final : public CallTool {
 public:
  using CallTool::CallTool;

  std::unique_ptr<Tool> part() const override {
    return std::make_unique<CallsTool>(shown_, procedures_.names());
  }
  void report(Report& report) const override {
    report.value("calls", "calls", calls_);
    // Jumps to what has no name are no calls, and end as if they were.
    std::vector<std::pair<Arc, Count>> sorted;
    std::copy_if(arcs_.begin(), arcs_.end(), std::back_inserter(sorted),
                 [](const auto& arc) { return arc.second.calls != 0; });
    report.value("arcs", "different callers and procedures", std::uint64_t{sorted.size()});
    report.value("deepest", "most calls open on one stack", std::uint64_t{deepest_});
    std::sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) {
      if (a.second.calls != b.second.calls) return a.second.calls > b.second.calls;
      return names_of(a.first) < names_of(b.first);
    });
    sorted.resize(std::min(sorted.size(), shown_));
    Table& table = report.table("arcs_by_calls", "By calls",
                                {{"caller", "caller", ""},
                                 {"procedure", "procedure", ""},
                                 {"module", "module", ""},
                                 {"calls", "calls", ""},
                                 {"ended", "ended", ""},
                                 {"instructions", "instructions", ""}});
    for (const auto& [arc, count] : sorted) {
      table.row({procedures_.name(arc.first), procedures_.name(arc.second),
                 procedures_.module(arc.second), count.calls, count.ended, count.instructions});
    }
  }

 private:
  using Arc = std::pair<ProcedureNumber, ProcedureNumber>;  ///< caller and procedure
  struct Count {
    std::uint64_t calls = 0, ended = 0, instructions = 0;
  };

  std::pair<std::string, std::string> names_of(const Arc& arc) const {
    return {procedures_.name(arc.first), procedures_.name(arc.second)};
  }
  void called(ProcedureNumber caller, ProcedureNumber procedure) override {
    if (warming_) return;
    ++calls_;
    ++arcs_[{caller, procedure}].calls;
    deepest_ = std::max(deepest_, follower_.stacks().depth());
  }
  void executed(ProcedureNumber /*procedure*/, std::uint64_t /*instructions*/) override {}
  void taken_back(ProcedureNumber /*procedure*/) override {}
  void left(const CallFrame& frame, std::uint64_t instructions, bool /*outermost*/,
            bool outermost_arc) override {
    Count& count = arcs_[{frame.caller, frame.procedure}];
    ++count.ended;
    if (outermost_arc) count.instructions += instructions;
  }

  std::map<Arc, Count> arcs_;
  std::uint64_t calls_ = 0;
  std::size_t deepest_ = 0;
};

std::unique_ptr<Tool> make_calls(ToolOptions& options, const Setup& setup) {
  return std::make_unique<CallsTool>(
      options.number("arcs", CallsTool::kShown, 0, CallsTool::kMostShown), setup.names);
}

}  // namespace

extern const ToolRow kCallsTool{"calls",
                                "Count calls by caller and procedure",
                                "arcs=N  show the N with the most calls (50)\n",
                                "citcat analyze boot.citcat --tool calls --symbols System.map",
                                ToolRow::Merging::serial,
                                make_calls};

}  // namespace citcat::tools
