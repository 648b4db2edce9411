// tree: which procedure ran within which, as a tree of call paths with what each executed: a flame
// graph's data (docs/tools/tree.md).

#include <memory>

#include "tools/analyses/call_tool.h"
#include "tools/analyses/call_tree.h"

namespace citcat::tools {
namespace {

class TreeTool final : public CallTool {
 public:
  using CallTool::CallTool;

  std::unique_ptr<Tool> part() const override {
    return std::make_unique<TreeTool>(shown_, procedures_.names());
  }
  void report(Report& report) const override {
    report.value("instructions", "instructions", tree_.totals()[CallTree::kRoot]);
    tree_.report(procedures_, shown_, report);
  }

 private:
  CallPath entered(CallPath under, ProcedureNumber procedure, bool is_base) override {
    return tree_.enter_procedure(under, procedure, !warming_ && !is_base);
  }
  void called(ProcedureNumber /*caller*/, ProcedureNumber /*procedure*/) override {}
  void left(const CallFrame& /*frame*/, std::uint64_t /*instructions*/, bool /*outermost*/,
            bool /*outermost_arc*/) override {}
  void executed(ProcedureNumber procedure, std::uint64_t instructions) override {
    tree_.executed(follower_.stacks(), procedure, instructions);
  }
  void executed_further(ProcedureNumber /*procedure*/, std::uint64_t instructions) override {
    tree_.executed_further(instructions);
  }
  void taken_back(ProcedureNumber /*procedure*/) override { tree_.taken_back(); }

  CallTree tree_;
};

std::unique_ptr<Tool> make_tree(ToolOptions& options, const Setup& setup) {
  return std::make_unique<TreeTool>(
      options.number("paths", CallTree::kShown, 0, TreeTool::kMostShown), setup.names);
}

}  // namespace

extern const ToolRow kTreeTool{
    "tree",
    "Count instructions by call path, for a flame graph",
    "paths=N  show the N with the most instructions (1000)\n",
    "citcat analyze boot.citcat --tool tree:paths=100 --symbols System.map",
    ToolRow::Merging::serial,
    make_tree};

}  // namespace citcat::tools
