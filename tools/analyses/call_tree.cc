#include "tools/analyses/call_tree.h"

#include <algorithm>
#include <numeric>

namespace citcat::tools {

std::uint32_t CallTree::child(std::uint32_t parent, ProcedureNumber procedure) {
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

std::uint32_t CallTree::entered(const CallFrame* under, ProcedureNumber procedure, bool counts) {
  const std::uint32_t path = child(under != nullptr ? under->path : kRoot, procedure);
  if (counts) ++paths_[path].calls;
  return path;
}

void CallTree::executed(const CallStacks& stacks, ProcedureNumber procedure,
                        std::uint64_t instructions) {
  const CallFrame* const frame = stacks.innermost_of_thread();
  const bool own = frame != nullptr && frame->procedure == procedure;
  last_ = own ? frame->path : child(frame != nullptr ? frame->path : kRoot, procedure);
  paths_[last_].own += instructions;
}

/// What was executed on each path and on those that go on from it.
std::vector<std::uint64_t> CallTree::totals() const {
  std::vector<std::uint64_t> totals(paths_.size());
  for (std::size_t i = paths_.size(); i-- > 0;) {
    totals[i] += paths_[i].own;
    if (i != kRoot) totals[paths_[i].parent] += totals[i];
  }
  return totals;
}

void CallTree::report(const ProcedureTable& procedures, std::size_t shown, Report& report) const {
  const std::vector<std::uint64_t> total = totals();
  std::vector<std::uint32_t> order(paths_.size() - 1);
  std::iota(order.begin(), order.end(), 1u);
  // A parent has at least what its children have, and comes before them: all that are shown hang
  // together.
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return total[a] > total[b]; });
  order.resize(std::min(order.size(), shown));
  std::sort(order.begin(), order.end());
  std::vector<std::uint64_t> row_of(paths_.size());
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
    table.row({row_of[path.parent], procedures.name(path.procedure),
               procedures.module(path.procedure), path.calls, path.own, total[order[i]]});
  }
}

}  // namespace citcat::tools
