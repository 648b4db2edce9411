// bpred: how often a table of counters predicts conditional branches. Formula and facts:
// docs/tools/bpred.md.

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <set>
#include <vector>

#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

/// A counter of a table: where it goes from each of four states when a branch is not taken, and when
/// it is. States 2 and 3 predict taken.
struct Machine {
  const char* key;
  const char* title;
  std::uint8_t next[4][2];
};

constexpr std::uint8_t kStates = 4, kStart = 2, kTaken = 2;

/// Smith's saturating counter of two bits (ISCA 1981), and that of IDtrace's simulator, which goes from
/// "not taken" back to "weakly taken" at once.
constexpr std::array<Machine, 2> kMachines = {{
    {"idtrace", "IDtrace's counter", {{0, 2}, {0, 2}, {0, 3}, {2, 3}}},
    {"two_bit", "saturating counter of two bits", {{0, 1}, {0, 2}, {1, 3}, {2, 3}}},
}};

/// A table entry of a part of a run that does not know in which state it was found: what comes of each.
struct Entry {
  std::array<std::uint8_t, kStates> state = {0, 1, 2, 3};
  std::array<std::uint64_t, kStates> correct{};
};

class BpredTool final : public Tool {
 public:
  BpredTool(std::uint64_t entries, bool begins)
      : begins_(begins), mask_(entries - 1) {
    for (auto& table : tables_) table.resize(entries);
  }

  Wants wants() const override { return {.executions = true}; }

  void* code(const StaticBlock& block) override {
    Branch& b = branches_.emplace_back();
    const StaticInstruction& last = block.back();
    b.first = block.front().linear;
    const InstructionClass kind = last.info.kind;
    b.conditional = kind == InstructionClass::jcc || kind == InstructionClass::loop;
    if (!b.conditional) return &b;
    b.address = last.linear;
    const auto behind = static_cast<std::uint32_t>(last.linear.value) + last.info.length;
    b.index = (behind - 1) & mask_;
    b.next = LinearAddr{behind};
    return &b;
  }

  void run(void* mine, const Execution& execution, const Context&) override {
    auto& b = *static_cast<Branch*>(mine);
    if (execution.first().iteration != 0) return;
    if (!first_) first_ = b.first;
    if (pending_.conditional) settle(b.first);
    pending_.conditional = b.conditional;
    if (!b.conditional) return;
    pending_.address = b.address;
    pending_.next = b.next;
    pending_.index = b.index;
    pending_.target = execution.address(execution.block().count() - 1);
  }

  std::unique_ptr<Tool> part() const override {
    return std::make_unique<BpredTool>(tables_[0].size(), begins_);
  }
  void follow(Tool&& later) override;
  void save(ByteWriter& out) const override;
  void load(ByteReader& in) override;
  void report(Report& out) const override;

 private:
  struct Branch {
    LinearAddr first;          ///< of its block
    bool conditional = false;  ///< that ends in one
    LinearAddr address, next;  ///< of the branch, and where it goes on when it is not taken
    std::size_t index = 0;     ///< into the tables
  };
  /// A branch of which is not known yet where it went.
  struct Pending {
    bool conditional = false;
    LinearAddr address, next, target;
    std::size_t index = 0;
  };

  /// The branch that is pending went to `to`.
  void settle(LinearAddr to) {
    const bool taken = to == pending_.target;
    if (!taken && to != pending_.next) {
      ++unseen_;
      return;
    }
    ++branches_seen_;
    // Of one to the instruction behind it nobody can tell.
    const bool went = to != pending_.next;
    if (went) ++taken_;
    if (distinct_last_ != pending_.address) {
      distinct_.insert(pending_.address);
      distinct_last_ = pending_.address;
    }
    for (std::size_t m = 0; m < kMachines.size(); ++m) {
      Entry& entry = tables_[m][pending_.index];
      if (begins_) {
        step(entry, kStart, kMachines[m], went);
      } else {
        for (std::uint8_t s = 0; s < kStates; ++s) step(entry, s, kMachines[m], went);
      }
    }
  }
  static void step(Entry& entry, std::uint8_t start, const Machine& machine, bool taken) {
    std::uint8_t& state = entry.state[start];
    if ((state >= kTaken) == taken) ++entry.correct[start];
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
  std::deque<Branch> branches_;
  std::optional<LinearAddr> first_;  ///< that ran
  Pending pending_;
  std::uint64_t branches_seen_ = 0, taken_ = 0, unseen_ = 0;
  std::set<LinearAddr> distinct_;
  std::optional<LinearAddr> distinct_last_;  ///< added last
};

void BpredTool::follow(Tool&& tool) {
  auto& later = static_cast<BpredTool&>(tool);
  if (!later.first_) return;
  if (pending_.conditional) settle(*later.first_);
  if (!first_) first_ = later.first_;
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
  pending_ = later.pending_;
  branches_seen_ += later.branches_seen_;
  taken_ += later.taken_;
  unseen_ += later.unseen_;
  distinct_.merge(later.distinct_);
}

void BpredTool::save(ByteWriter& out) const {
  const auto address = [&](LinearAddr a) { out.varint(a.value); };
  out.varint(branches_seen_);
  out.varint(taken_);
  out.varint(unseen_);
  out.u8(first_ ? 1 : 0);
  address(first_.value_or(LinearAddr{}));
  out.u8(pending_.conditional ? 1 : 0);
  address(pending_.address);
  address(pending_.next);
  address(pending_.target);
  out.varint(distinct_.size());
  for (const LinearAddr a : distinct_) address(a);
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
  const auto address = [&](const char* what) {
    const std::uint64_t value = in.varint(what);
    if (value > 0xffffffff) in.fail("expected an address of 32 bits");
    return LinearAddr{static_cast<std::uint32_t>(value)};
  };
  branches_seen_ = in.varint("branches");
  taken_ = in.varint("taken branches");
  unseen_ = in.varint("branches not seen to go on");
  const bool ran = in.u8("something ran") != 0;
  const LinearAddr first = address("first address");
  if (ran) first_ = first;
  pending_.conditional = in.u8("a branch is pending") != 0;
  pending_.address = address("pending branch");
  pending_.next = address("behind it");
  pending_.target = address("its target");
  pending_.index =
      static_cast<std::size_t>((static_cast<std::uint32_t>(pending_.next.value) - 1) & mask_);
  const std::uint64_t distinct = in.varint("different branches");
  for (std::uint64_t i = 0; i < distinct; ++i) distinct_.insert(address("branch"));
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
    return branches_seen_ != 0
               ? 100.0 * static_cast<double>(n) / static_cast<double>(branches_seen_)
               : 0.0;
  };
  out.value("entries", "entries", std::uint64_t{tables_[0].size()});
  out.value("branches", "conditional branches", branches_seen_);
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
