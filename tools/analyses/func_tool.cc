// func: how many instructions each procedure executed, by itself and with all that it called
// (docs/tools/func.md).

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "tools/analyses/call_tool.h"
#include "tools/analyses/call_tree.h"

namespace citcat::tools {
namespace {

class FuncTool final : public CallTool {
 public:
  /// `paths`: rows of the tree of call paths; 0: there is none.
  FuncTool(std::size_t shown, std::size_t paths, const NameSource* names)
      : CallTool(shown, names), paths_(paths) {
    if (paths != 0) tree_.emplace();
  }

  std::unique_ptr<Tool> part() const override {
    return std::make_unique<FuncTool>(shown_, paths_, procedures_.names());
  }
  void report(Report& report) const override {
    std::uint64_t all = 0;
    std::vector<ProcedureNumber> order;
    for (ProcedureNumber p = 0; p < counts_.size(); ++p) {
      all += counts_[p].own;
      if (counts_[p].own != 0 || counts_[p].calls != 0) order.push_back(p);
    }
    report.value("instructions", "instructions", all);
    report.value("procedures", "procedures", std::uint64_t{order.size()});
    std::sort(order.begin(), order.end(), [&](ProcedureNumber a, ProcedureNumber b) {
      if (counts_[a].own != counts_[b].own) return counts_[a].own > counts_[b].own;
      return procedures_.name(a) < procedures_.name(b);
    });
    order.resize(std::min(order.size(), shown_));
    Table& table = report.table("procedures_by_instructions", "By instructions of their own",
                                {{"procedure", "procedure", ""},
                                 {"module", "module", ""},
                                 {"address", "address", ""},
                                 {"calls", "calls", ""},
                                 {"own", "own instructions", ""},
                                 {"share", "share", "%"},
                                 {"with_callees", "with what they called", ""}});
    for (const ProcedureNumber p : order) {
      const Count& count = counts_[p];
      const double share =
          all == 0 ? 0 : 100.0 * static_cast<double>(count.own) / static_cast<double>(all);
      const auto begin = procedures_.begin(p);
      table.row({procedures_.name(p), procedures_.module(p),
                 begin ? hexadecimal(begin->value) : std::string(), count.calls, count.own, share,
                 count.total});
    }
    if (tree_) tree_->report(procedures_, paths_, report);
  }

 private:
  struct Count {
    std::uint64_t calls = 0, own = 0;
    std::uint64_t total = 0;  ///< of calls that ended
  };
  Count& count_of(ProcedureNumber procedure) {
    if (procedure >= counts_.size()) counts_.resize(procedures_.size());
    return counts_[procedure];
  }

  CallPath entered(CallPath under, ProcedureNumber procedure, bool is_base) override {
    return tree_ ? tree_->enter_procedure(under, procedure, !warming_ && !is_base) : 0;
  }
  void called(ProcedureNumber /*caller*/, ProcedureNumber procedure) override {
    if (!warming_) ++count_of(procedure).calls;
  }
  void executed(ProcedureNumber procedure, std::uint64_t instructions) override {
    count_of(procedure).own += instructions;
    if (tree_) tree_->executed(follower_.stacks(), procedure, instructions);
  }
  void executed_further(ProcedureNumber procedure, std::uint64_t instructions) override {
    counts_[procedure].own += instructions;
    if (tree_) tree_->executed_further(instructions);
  }
  void taken_back(ProcedureNumber procedure) override {
    --count_of(procedure).own;
    if (tree_) tree_->taken_back();
  }
  void left(const CallFrame& frame, std::uint64_t instructions, bool outermost,
            bool /*outermost_arc*/) override {
    if (outermost) count_of(frame.procedure).total += instructions;
  }

  std::size_t paths_;
  std::optional<CallTree> tree_;
  std::vector<Count> counts_;
};

std::unique_ptr<Tool> make_func(ToolOptions& options, const Setup& setup) {
  return std::make_unique<FuncTool>(
      options.number("procedures", FuncTool::kShown, 0, FuncTool::kMostShown),
      options.number("paths", 0, 0, FuncTool::kMostShown), setup.names);
}

}  // namespace

extern const ToolRow kFuncTool{"func",
                               "Count instructions by procedure, alone and with callees",
                               "procedures=N  show the N with the most instructions (50)\n"
                               "paths=N       show N call paths, too, as tree does (0)\n",
                               "citcat analyze boot.citcat --tool func --symbols System.map",
                               ToolRow::Merging::serial,
                               make_func};

}  // namespace citcat::tools
