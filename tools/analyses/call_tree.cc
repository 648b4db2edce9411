#include "tools/analyses/call_tree.h"

#include <algorithm>

namespace citcat::tools {
namespace {

/// The procedure that a path ends in.
ProcedureNumber number_of(const CallTree::Path& path) {
  return static_cast<ProcedureNumber>(path.value);
}

}  // namespace

CallPath CallTree::child(CallPath parent, Kind kind, std::uint64_t value) {
  const Key key{parent, kind, value};
  const auto found = children_.find(key);
  if (found != children_.end()) return found->second;
  const std::uint32_t depth = paths_[parent].depth + 1;
  if (paths_.size() == kMostPaths || depth > kDeepest) {
    ++not_kept_;
    return parent;
  }
  const auto number = static_cast<CallPath>(paths_.size());
  paths_.push_back({parent, kind, value, depth});
  children_.emplace(key, number);
  return number;
}

CallPath CallTree::enter(CallPath parent, Kind kind, std::uint64_t value) {
  const CallPath path = child(parent, kind, value);
  ++paths_[path].entered;
  return path;
}

CallPath CallTree::enter_procedure(CallPath under, ProcedureNumber procedure, bool counts) {
  const CallPath path = enter(under, Kind::procedure, procedure);
  if (counts) ++paths_[path].calls;
  return path;
}

/// Code of another procedure than the one that was called, as where that jumped on, is in the
/// place of it.
void CallTree::executed(const CallStacks& stacks, ProcedureNumber procedure,
                        std::uint64_t instructions) {
  const CallPath path = stacks.path();
  const Path& here = paths_[path];
  const bool is_procedure = here.kind == Kind::procedure;
  if (is_procedure && here.value == procedure) {
    last_ = path;
  } else {
    last_ = child(is_procedure ? here.parent : path, Kind::procedure, procedure);
  }
  paths_[last_].own += instructions;
}

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
  std::vector<CallPath> order;
  for (CallPath p = 1; p < paths_.size(); ++p) {
    if (total[p] != 0 || paths_[p].calls != 0) order.push_back(p);
  }
  report.value("paths", "different call paths", std::uint64_t{order.size()});
  report.value("not_kept", "calls whose path was not kept", not_kept_);
  // A parent has at least what its children have, and comes before them: all that are shown hang
  // together.
  std::stable_sort(order.begin(), order.end(),
                   [&](CallPath a, CallPath b) { return total[a] > total[b]; });
  order.resize(std::min(order.size(), shown));
  std::sort(order.begin(), order.end());
  std::vector<std::uint64_t> row_of(paths_.size());
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
    table.row({row_of[path.parent], procedures.name(number_of(path)),
               procedures.module(number_of(path)), path.calls, path.own, total[order[i]]});
  }
}

}  // namespace citcat::tools
