// bpred: how often a table of counters predicts conditional branches. Formula and facts:
// docs/tools/bpred.md.

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <set>
#include <vector>

#include "tools/analyses/branch_follower.h"
#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

/// A counter of a table: where it goes from each of four states when a branch is not taken, and
/// when it is. States 2 and 3 predict taken.
struct Machine {
  const char* key;
  const char* title;
  std::uint8_t next[4][2];
};

constexpr std::uint8_t kStates = 4, kStart = 2, kTaken = 2;

/// Smith's saturating counter of two bits (ISCA 1981), and that of IDtrace's simulator, which goes
/// from "not taken" back to "weakly taken" at once: worked out from known results, not read in the
/// report (docs/tools/bpred.md).
constexpr std::array<Machine, 2> kMachines = {{
    {"idtrace", "IDtrace's counter", {{0, 2}, {0, 2}, {0, 3}, {2, 3}}},
    {"two_bit", "saturating counter of two bits", {{0, 1}, {0, 2}, {1, 3}, {2, 3}}},
}};

/// A table entry of a part of a run that does not know in which state it was found: what comes of
/// each.
struct Entry {
  std::array<std::uint8_t, kStates> state = {0, 1, 2, 3};
  std::array<std::uint64_t, kStates> correct{};
};

class BpredTool final : public Tool {
 public:
  BpredTool(std::uint64_t entries, bool begins) : begins_(begins), mask_(entries - 1) {
    for (auto& table : tables_) table.resize(entries);
  }

  Wants wants() const override { return {.executions = true}; }
  bool warms() const override { return true; }
  void set_warming(bool warming) override { warming_ = warming; }

  void* code(const StaticBlock& block) override {
    return &ends_.emplace_back(BranchFollower::end_of(block));
  }
  void run(void* mine, const Execution& execution, const Context&) override {
    follower_.step(*static_cast<const BranchFollower::End*>(mine), execution,
                   [this](const FollowedBranch& b, LinearAddr to) { settle(b, to); });
  }

  std::unique_ptr<Tool> part() const override {
    return std::make_unique<BpredTool>(tables_[0].size(), begins_);
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
    // By the address of its last byte, as in IDtrace's branch traces.
    const std::size_t index = (static_cast<std::uint32_t>(branch.next.value) - 1) & mask_;
    for (std::size_t m = 0; m < kMachines.size(); ++m) {
      Entry& entry = tables_[m][index];
      if (begins_) {
        step(entry, kStart, kMachines[m], *taken);
      } else {
        for (std::uint8_t s = 0; s < kStates; ++s) step(entry, s, kMachines[m], *taken);
      }
    }
  }
  void count(const FollowedBranch& branch, std::optional<bool> taken) {
    if (!taken) {
      ++unseen_;
      return;
    }
    ++branches_;
    if (*taken) ++taken_;
    if (distinct_last_ == branch.address) return;
    distinct_.insert(branch.address);
    distinct_last_ = branch.address;
  }
  void step(Entry& entry, std::uint8_t start, const Machine& machine, bool taken) const {
    std::uint8_t& state = entry.state[start];
    if (!warming_ && (state >= kTaken) == taken) ++entry.correct[start];
    state = machine.next[state][taken ? 1 : 0];
  }
  std::uint64_t correct(std::size_t machine) const {
    std::uint64_t sum = 0;
    for (const Entry& e : tables_[machine]) sum += e.correct[kStart];
    return sum;
  }

  bool begins_;
  std::size_t mask_;
  std::array<std::vector<Entry>, kMachines.size()> tables_;
  std::deque<BranchFollower::End> ends_;
  BranchFollower follower_;
  std::uint64_t branches_ = 0, taken_ = 0, unseen_ = 0;
  std::set<LinearAddr> distinct_;
  std::optional<LinearAddr> distinct_last_;  ///< added last
  bool warming_ = false;
};

void BpredTool::follow(Tool&& tool) {
  auto& later = static_cast<BpredTool&>(tool);
  follower_.follow(later.follower_,
                   [this](const FollowedBranch& b, LinearAddr to) { settle(b, to); });
  for (std::size_t m = 0; m < kMachines.size(); ++m) {
    for (std::size_t i = 0; i < tables_[m].size(); ++i) {
      Entry& mine = tables_[m][i];
      const Entry& other = later.tables_[m][i];
      for (std::uint8_t s = 0; s < kStates; ++s) {
        const std::uint8_t between = mine.state[s];
        mine.correct[s] += other.correct[between];
        mine.state[s] = other.state[between];
      }
    }
  }
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
  for (const auto& table : tables_) {
    for (const Entry& e : table) {
      for (std::uint8_t s = 0; s < kStates; ++s) {
        out.u8(e.state[s]);
        out.varint(e.correct[s]);
      }
    }
  }
}

void BpredTool::load(ByteReader& in) {
  branches_ = in.varint("branches");
  taken_ = in.varint("taken branches");
  unseen_ = in.varint("branches not seen to go on");
  follower_.load(in);
  const std::uint64_t distinct = in.varint("different branches");
  for (std::uint64_t i = 0; i < distinct; ++i) distinct_.insert(load_address(in, "branch"));
  for (auto& table : tables_) {
    for (Entry& e : table) {
      for (std::uint8_t s = 0; s < kStates; ++s) {
        e.state[s] = in.u8("state");
        if (e.state[s] >= kStates) in.fail("expected a state from 0 to 3");
        e.correct[s] = in.varint("correct predictions");
      }
    }
  }
}

void BpredTool::report(Report& out) const {
  const auto share = [&](std::uint64_t n) {
    return branches_ != 0 ? 100.0 * static_cast<double>(n) / static_cast<double>(branches_) : 0.0;
  };
  out.value("entries", "entries", std::uint64_t{tables_[0].size()});
  out.value("branches", "conditional branches", branches_);
  out.value("distinct", "different ones", std::uint64_t{distinct_.size()});
  out.value("taken", "taken", taken_);
  out.value("unseen", "not seen to go on", unseen_);
  Report& correct_group = out.group("correct", "predicted correctly");
  for (std::size_t m = 0; m < kMachines.size(); ++m) {
    correct_group.value(kMachines[m].key, kMachines[m].title, correct(m));
  }
  Report& percent = out.group("percent", "of all");
  for (std::size_t m = 0; m < kMachines.size(); ++m) {
    percent.value(kMachines[m].key, kMachines[m].title, share(correct(m)), "%");
  }
}

std::unique_ptr<Tool> make(ToolOptions& options, const Setup& setup) {
  return std::make_unique<BpredTool>(options.power_of_two("entries", 1024, 1, 1u << 24),
                                     setup.begins);
}

}  // namespace

extern const ToolRow kBpredTool{"bpred",
                                "Predict conditional branches by tables of counters",
                                "entries=N  counters in a table, a power of two (1024)\n",
                                "citcat analyze boot.citcat --tool bpred:entries=256",
                                ToolRow::Merging::exact,
                                make};

}  // namespace citcat::tools
