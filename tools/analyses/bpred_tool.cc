// bpred: how often a table of counters predicts conditional branches. Formula and facts:
// docs/tools/bpred.md.

#include <array>
#include <deque>
#include <optional>
#include <set>
#include <vector>

#include "tools/analyses/branch_follower.h"
#include "tools/analyses/predictor_table.h"
#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

class BpredTool final : public Tool {
 public:
  BpredTool(std::vector<std::uint64_t> entries, bool begins)
      : entries_(std::move(entries)), begins_(begins) {
    for (const std::uint64_t n : entries_) tables_.emplace_back(n, begins);
  }

  Wants wants() const override { return {.executions = true}; }
  bool warms() const override { return true; }
  void set_warming(bool warming) override { warming_ = warming; }
  void gap() override { follower_.gap(); }

  void* code(const StaticBlock& block) override {
    return &ends_.emplace_back(BranchFollower::end_of(block));
  }
  void run(void* mine, const Execution& execution, const Context&) override {
    follower_.step(*static_cast<const BranchFollower::End*>(mine), execution,
                   [this](const FollowedBranch& b, LinearAddr to) { settle(b, to); });
  }

  std::unique_ptr<Tool> part() const override {
    return std::make_unique<BpredTool>(entries_, begins_);
  }
  void follow(Tool&& later) override;
  void save(ByteWriter& out) const override;
  void load(ByteReader& in) override;
  void report(Report& out) const override;

 private:
  void settle(const FollowedBranch& branch, LinearAddr to) {
    if (!branch.is_conditional()) return;
    const std::optional<bool> taken = outcome(branch, to);
    if (!warming_) count(branch, taken);
    if (!taken) return;
    for (PredictorTable& table : tables_) table.step(branch.next, *taken, !warming_);
  }
  void count(const FollowedBranch& branch, std::optional<bool> taken) {
    if (!taken) {
      ++unseen_;
      return;
    }
    ++branches_;
    if (*taken) ++taken_;
    note_distinct(branch.address);
  }
  void note_distinct(LinearAddr branch) {
    LinearAddr& noted = noted_[branch.value % noted_.size()];
    if (noted == branch && branch.value != 0) return;
    noted = branch;
    distinct_.insert(branch);
  }
  double share(std::uint64_t n) const {
    return branches_ != 0 ? 100.0 * static_cast<double>(n) / static_cast<double>(branches_) : 0.0;
  }
  void report_table(const PredictorTable& table, Report& out) const;

  std::vector<std::uint64_t> entries_;
  bool begins_;
  std::vector<PredictorTable> tables_;  ///< of so many entries each
  std::deque<BranchFollower::End> ends_;
  BranchFollower follower_;
  std::uint64_t branches_ = 0, taken_ = 0, unseen_ = 0;
  std::set<LinearAddr> distinct_;
  std::array<LinearAddr, 1024> noted_;  ///< some of them
  bool warming_ = false;
};

void BpredTool::follow(Tool&& tool) {
  auto& later = static_cast<BpredTool&>(tool);
  follower_.follow(later.follower_,
                   [this](const FollowedBranch& b, LinearAddr to) { settle(b, to); });
  for (std::size_t t = 0; t < tables_.size(); ++t) tables_[t].follow(later.tables_[t]);
  branches_ += later.branches_;
  taken_ += later.taken_;
  unseen_ += later.unseen_;
  distinct_.merge(later.distinct_);
}

void BpredTool::save(ByteWriter& out) const {
  out.varint(branches_);
  out.varint(taken_);
  out.varint(unseen_);
  follower_.save(out);
  out.varint(distinct_.size());
  for (const LinearAddr a : distinct_) save_address(out, a);
  for (const PredictorTable& table : tables_) table.save(out);
}

void BpredTool::load(ByteReader& in) {
  branches_ = in.varint("branches");
  taken_ = in.varint("taken branches");
  unseen_ = in.varint("branches not seen to go on");
  follower_.load(in);
  const std::uint64_t distinct = in.varint("different branches");
  for (std::uint64_t i = 0; i < distinct; ++i) distinct_.insert(load_address(in, "branch"));
  for (PredictorTable& table : tables_) table.load(in);
}

void BpredTool::report_table(const PredictorTable& table, Report& out) const {
  Report& correct = out.group("correct", "predicted correctly");
  Report& percent = out.group("percent", "of all");
  for (std::size_t c = 0; c < kPredictorCounters.size(); ++c) {
    const PredictorCounter& counter = kPredictorCounters[c];
    correct.value(counter.key, counter.title, table.correct(c));
    percent.value(counter.key, counter.title, share(table.correct(c)), "%");
  }
}

void BpredTool::report(Report& out) const {
  if (tables_.size() == 1) out.value("entries", "entries", std::uint64_t{tables_[0].entries()});
  out.value("branches", "conditional branches", branches_);
  out.value("distinct", "distinct branches", std::uint64_t{distinct_.size()});
  out.value("taken", "taken", taken_);
  out.value("unseen", "without a visible outcome", unseen_);
  if (tables_.size() == 1) return report_table(tables_[0], out);
  Table& sizes = out.table("sizes", "predicted correctly",
                           {{"entries", "entries", ""},
                            {"counter", "counter", ""},
                            {"correct", "branches", ""},
                            {"percent", "of all", "%"}});
  for (const PredictorTable& table : tables_) {
    for (std::size_t c = 0; c < kPredictorCounters.size(); ++c) {
      sizes.row({std::uint64_t{table.entries()}, std::string(kPredictorCounters[c].key),
                 table.correct(c), share(table.correct(c))});
    }
  }
}

std::unique_ptr<Tool> make_bpred(ToolOptions& options, const Setup& setup) {
  return std::make_unique<BpredTool>(options.powers_of_two("entries", 1024, 1, 1u << 24),
                                     setup.begins);
}

}  // namespace

extern const ToolRow kBpredTool{"bpred",
                                "Predict conditional branches by tables of counters",
                                "entries=N  counters in a table, a power of two (1024);\n"
                                "           several: 64+256+1024\n",
                                "citcat analyze boot.citcat --tool bpred:entries=256",
                                ToolRow::Merging::exact,
                                make_bpred};

}  // namespace citcat::tools
