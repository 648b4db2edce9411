#pragma once
// Who called whom, in the form that exporters of profiles write: processes and the system
// outermost, deliveries between the interrupted code and their handlers.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/analyses/call_tree.h"
#include "tools/host/names.h"

namespace citcat::tools {

class CallPaths {
 public:
  static constexpr CallPath kRoot = CallTree::kRoot;
  using Node = CallTree::Path;

  /// All must outlive the object; `names` may be null.
  CallPaths(const CallTree& tree, const ProcedureTable& procedures, const NameSource* names)
      : tree_(tree), procedures_(procedures), names_(names) {}

  /// Parents come before their children.
  const std::vector<Node>& nodes() const { return tree_.paths(); }
  /// "process sh", "do_fork" or "c0123456", "interrupt 30".
  std::string name(const Node& node) const;
  /// From the outermost to `node`, without the root.
  std::vector<CallPath> path_of(CallPath node) const;
  /// What ran in each node and in what it called.
  std::vector<std::uint64_t> inclusive() const { return tree_.totals(); }

 private:
  const CallTree& tree_;
  const ProcedureTable& procedures_;
  const NameSource* names_;
};

}  // namespace citcat::tools
