// branches: where control goes: conditional branches, jumps, calls and returns, one by one and by
// class. Formula and facts: docs/tools/branches.md.

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "tools/analyses/branch_follower.h"
#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

constexpr const char* kClasses[] = {"conditional", "jump", "call", "return"};

std::size_t class_of(const FollowedBranch& b) {
  return b.is_conditional()                 ? 0
         : b.kind == InstructionClass::jump ? 1
         : b.kind == InstructionClass::call ? 2
                                            : 3;
}

/// Of all branches of a class.
struct ClassCounts {
  std::uint64_t executions = 0, taken = 0, unseen = 0, indirect = 0, backward = 0;
};

/// Of one branch: how often it went where.
struct Branch {
  std::size_t number = 0;  ///< its class
  bool indirect = false;
  std::uint64_t executions = 0, taken = 0;
  std::map<LinearAddr, std::uint64_t> targets;  ///< of an indirect one
};

class BranchesTool final : public Tool {
 public:
  explicit BranchesTool(std::size_t shown) : shown_(shown) {}

  Wants wants() const override { return {.executions = true}; }
  void* code(const StaticBlock& block) override {
    return &ends_.emplace_back(BranchFollower::end_of(block));
  }
  void run(void* mine, const Execution& execution, const Context&) override {
    follower_.step(*static_cast<const BranchFollower::End*>(mine), execution,
                   [this](const FollowedBranch& b, LinearAddr to) { settle(b, to); });
  }
  std::unique_ptr<Tool> part() const override { return std::make_unique<BranchesTool>(shown_); }
  void follow(Tool&& tool) override {
    auto& later = static_cast<BranchesTool&>(tool);
    follower_.follow(later.follower_,
                     [this](const FollowedBranch& b, LinearAddr to) { settle(b, to); });
    for (std::size_t c = 0; c < std::size(kClasses); ++c) {
      classes_[c].executions += later.classes_[c].executions;
      classes_[c].taken += later.classes_[c].taken;
      classes_[c].unseen += later.classes_[c].unseen;
      classes_[c].indirect += later.classes_[c].indirect;
      classes_[c].backward += later.classes_[c].backward;
    }
    for (const auto& [address, theirs] : later.branches_) {
      Branch& mine = branches_[address];
      mine.number = theirs.number;
      mine.indirect = theirs.indirect;
      mine.executions += theirs.executions;
      mine.taken += theirs.taken;
      for (const auto& [target, count] : theirs.targets) mine.targets[target] += count;
    }
    for (std::size_t i = 0; i < distances_.size(); ++i) distances_[i] += later.distances_[i];
  }
  void save(ByteWriter& out) const override;
  void load(ByteReader& in) override;
  void report(Report& out) const override;

 private:
  void settle(const FollowedBranch& b, LinearAddr to) {
    const std::size_t number = class_of(b);
    ClassCounts& counts = classes_[number];
    bool taken = true;
    if (b.is_conditional()) {
      const auto went = outcome(b, to);
      if (!went) {
        ++counts.unseen;
        return;
      }
      taken = *went;
    } else if (!b.indirect && to != b.target) {
      ++counts.unseen;
      return;
    }
    ++counts.executions;
    Branch& branch = branches_[b.address];
    branch.number = number;
    branch.indirect = b.indirect;
    ++branch.executions;
    if (b.indirect) {
      ++counts.indirect;
      ++branch.targets[to];
    }
    if (!taken) return;
    ++counts.taken;
    ++branch.taken;
    if (to < b.next) ++counts.backward;
    const std::uint64_t forward = to.value - b.next.value;
    const std::uint64_t distance = to < b.next ? 0 - forward : forward;
    ++distances_[static_cast<std::size_t>(std::bit_width(distance))];
  }

  std::size_t shown_;
  std::deque<BranchFollower::End> ends_;
  BranchFollower follower_;
  std::array<ClassCounts, std::size(kClasses)> classes_{};
  std::map<LinearAddr, Branch> branches_;
  std::array<std::uint64_t, 65> distances_{};  ///< taken, by bits of the distance in bytes
};

void BranchesTool::save(ByteWriter& out) const {
  follower_.save(out);
  for (const ClassCounts& c : classes_) {
    for (const std::uint64_t n : {c.executions, c.taken, c.unseen, c.indirect, c.backward}) {
      out.varint(n);
    }
  }
  for (const std::uint64_t n : distances_) out.varint(n);
  out.varint(branches_.size());
  for (const auto& [address, b] : branches_) {
    save_address(out, address);
    out.u8(static_cast<std::uint8_t>(b.number << 1 | (b.indirect ? 1 : 0)));
    out.varint(b.executions);
    out.varint(b.taken);
    out.varint(b.targets.size());
    for (const auto& [target, count] : b.targets) {
      save_address(out, target);
      out.varint(count);
    }
  }
}

void BranchesTool::load(ByteReader& in) {
  follower_.load(in);
  for (ClassCounts& c : classes_) {
    for (std::uint64_t* n : {&c.executions, &c.taken, &c.unseen, &c.indirect, &c.backward}) {
      *n = in.varint("count of a class");
    }
  }
  for (std::uint64_t& n : distances_) n = in.varint("count of a distance");
  const std::uint64_t count = in.varint("number of branches");
  for (std::uint64_t i = 0; i < count; ++i) {
    Branch& b = branches_[load_address(in, "branch")];
    const std::uint8_t kind = in.u8("class of a branch");
    b.number = kind >> 1;
    b.indirect = (kind & 1) != 0;
    if (b.number >= std::size(kClasses)) in.fail("expected the class of a branch");
    b.executions = in.varint("executions");
    b.taken = in.varint("taken");
    const std::uint64_t targets = in.varint("number of targets");
    for (std::uint64_t t = 0; t < targets; ++t) {
      const LinearAddr target = load_address(in, "target");
      b.targets[target] = in.varint("count of a target");
    }
  }
}

void BranchesTool::report(Report& out) const {
  std::array<std::uint64_t, std::size(kClasses)> different{};
  for (const auto& [address, b] : branches_) ++different[b.number];
  Table& classes = out.table("classes", "by class",
                             {{"class", "class", ""},
                              {"branches", "executions", ""},
                              {"distinct", "different", ""},
                              {"taken", "taken", ""},
                              {"backward", "of these backward", ""},
                              {"indirect", "indirect", ""},
                              {"unseen", "not seen to go on", ""}});
  for (std::size_t c = 0; c < std::size(kClasses); ++c) {
    const ClassCounts& k = classes_[c];
    classes.row({std::string(kClasses[c]), k.executions, different[c], k.taken, k.backward,
                 k.indirect, k.unseen});
  }
  Table& distances = out.table("distances", "how far those go that are taken",
                               {{"below", "below", "bytes"}, {"count", "count", ""}});
  for (std::size_t i = 0; i < distances_.size(); ++i) {
    if (distances_[i] != 0) distances.row({std::uint64_t{1} << i, distances_[i]});
  }
  std::vector<std::pair<LinearAddr, const Branch*>> busiest;
  for (const auto& [address, b] : branches_) busiest.emplace_back(address, &b);
  std::stable_sort(busiest.begin(), busiest.end(), [](const auto& a, const auto& b) {
    return a.second->executions > b.second->executions;
  });
  Table& table = out.table("busiest", "the busiest",
                           {{"address", "address", ""},
                            {"class", "class", ""},
                            {"executions", "executions", ""},
                            {"taken", "taken", ""},
                            {"targets", "targets of an indirect one", ""}});
  for (std::size_t i = 0; i < std::min(shown_, busiest.size()); ++i) {
    const Branch& b = *busiest[i].second;
    table.row({hexadecimal(busiest[i].first.value), std::string(kClasses[b.number]), b.executions,
               b.taken, std::uint64_t{b.targets.size()}});
  }
}

std::unique_ptr<Tool> make_branches(ToolOptions& options, const Setup&) {
  return std::make_unique<BranchesTool>(options.number("show", 20, 0, 1u << 24));
}

}  // namespace

extern const ToolRow kBranchesTool{"branches",
                                   "Count branches, jumps, calls and returns, and where they go",
                                   "show=N  show the N busiest (20)\n",
                                   "citcat analyze boot.citcat --tool branches:show=100",
                                   ToolRow::Merging::exact,
                                   make_branches};

}  // namespace citcat::tools
