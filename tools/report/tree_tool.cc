// tree: which procedure ran within which, as a tree of call paths with what each executed: a flame
// graph's data (docs/tools/tree.md).

#include <algorithm>
#include <memory>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "tools/analyses/call_tool.h"

namespace citcat::tools {
namespace {

class TreeTool final : public CallTool {
 public:
  using CallTool::CallTool;

  std::unique_ptr<Tool> part() const override {
    return std::make_unique<TreeTool>(shown_, procedures_.names());
  }
  void report(Report& report) const override;

 private:
  /// Paths beyond are counted where they branch off.
  static constexpr std::size_t kMostPaths = std::size_t{1} << 20;
  static constexpr std::uint32_t kRoot = 0;

  struct Path {
    std::uint32_t parent = kRoot;
    ProcedureNumber procedure = 0;
    std::uint64_t calls = 0, own = 0;
  };

  std::uint32_t child(std::uint32_t parent, ProcedureNumber procedure) {
    const std::uint64_t key = std::uint64_t{parent} << 32 | procedure;
    const auto found = children_.find(key);
    if (found != children_.end()) return found->second;
    if (paths_.size() == kMostPaths) {
      ++not_kept_;
      return parent;
    }
    const auto number = static_cast<std::uint32_t>(paths_.size());
    paths_.push_back({parent, procedure, 0, 0});
    children_.emplace(key, number);
    return number;
  }
  std::uint32_t entered(const CallFrame* under, ProcedureNumber procedure) override {
    const std::uint32_t path = child(under != nullptr ? under->path : kRoot, procedure);
    ++paths_[path].calls;
    return path;
  }
  void called(ProcedureNumber /*caller*/, ProcedureNumber /*procedure*/) override {}
  void left(const CallFrame& /*frame*/, std::uint64_t /*instructions*/, bool /*outermost*/,
            bool /*outermost_arc*/) override {}
  void executed(ProcedureNumber procedure, std::uint64_t instructions) override {
    const CallFrame* const frame = follower_.stacks().innermost_of_thread();
    const bool own = frame != nullptr && frame->procedure == procedure;
    last_ = own ? frame->path : child(frame != nullptr ? frame->path : kRoot, procedure);
    paths_[last_].own += instructions;
  }
  void taken_back(ProcedureNumber /*procedure*/) override { --paths_[last_].own; }
  std::vector<std::uint64_t> totals() const;

  std::vector<Path> paths_{Path{}};  ///< parents before their children
  std::unordered_map<std::uint64_t, std::uint32_t> children_;
  std::uint32_t last_ = kRoot;  ///< that something was executed in
  std::uint64_t not_kept_ = 0;
};

/// What was executed on each path and on those that go on from it.
std::vector<std::uint64_t> TreeTool::totals() const {
  std::vector<std::uint64_t> totals(paths_.size());
  for (std::size_t i = paths_.size(); i-- > 0;) {
    totals[i] += paths_[i].own;
    if (i != kRoot) totals[paths_[i].parent] += totals[i];
  }
  return totals;
}

void TreeTool::report(Report& report) const {
  const std::vector<std::uint64_t> total = totals();
  std::vector<std::uint32_t> order(paths_.size() - 1);
  std::iota(order.begin(), order.end(), 1u);
  // A parent has at least what its children have, and comes before them: all that are shown hang
  // together.
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return total[a] > total[b]; });
  order.resize(std::min(order.size(), shown_));
  std::sort(order.begin(), order.end());
  std::vector<std::uint64_t> row_of(paths_.size());
  report.value("instructions", "instructions", total[kRoot]);
  report.value("paths", "different call paths", std::uint64_t{paths_.size() - 1});
  report.value("not_kept", "calls whose path was not kept", not_kept_);
  Table& table = report.table("tree", "Call paths; a parent is a row, counted from 1, or 0: none",
                              {{"parent", "parent", ""},
                               {"procedure", "procedure", ""},
                               {"module", "module", ""},
                               {"calls", "calls", ""},
                               {"own", "own instructions", ""},
                               {"total", "with what it called", ""}});
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Path& path = paths_[order[i]];
    row_of[order[i]] = i + 1;
    table.row({row_of[path.parent], procedures_.name(path.procedure),
               procedures_.module(path.procedure), path.calls, path.own, total[order[i]]});
  }
}

constexpr std::uint64_t kShown = 1000;

std::unique_ptr<Tool> make(ToolOptions& options, const Setup& setup) {
  return std::make_unique<TreeTool>(options.number("paths", kShown, 0, TreeTool::kMostShown),
                                    setup.names);
}

}  // namespace

extern const ToolRow kTreeTool{"tree",
                               "Count instructions by call path, for a flame graph",
                               "paths=N  show the N with most instructions (1000)\n",
                               "citcat analyze boot.citcat --tool tree:paths=100 --symbols System.map",
                               ToolRow::Merging::serial,
                               make};

}  // namespace citcat::tools
