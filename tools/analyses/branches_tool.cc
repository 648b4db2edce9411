// branches: where control goes: conditional branches, jumps, calls and returns, one by one and by
// class. Formula and facts: docs/tools/branches.md.

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <map>
#include <optional>
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

/// Counts for all branches of a class.
struct ClassCounts {
  std::uint64_t executions = 0, taken = 0, unseen = 0, indirect = 0, backward = 0;
};

/// How often one branch went where.
struct Branch {
  std::size_t number = 0;  ///< its class
  bool indirect = false;
  std::uint64_t executions = 0, taken = 0;
  std::map<LinearAddr, std::uint64_t> targets;  ///< of an indirect one
};

/// What is known of all that were executed.
struct Branches {
  std::array<ClassCounts, std::size(kClasses)> classes{};
  std::map<LinearAddr, Branch> single;
  std::array<std::uint64_t, 65> distances{};  ///< taken, by bits of the distance in bytes

  /// It was executed.
  Branch& count(const FollowedBranch& b) {
    const std::size_t number = class_of(b);
    ++classes[number].executions;
    if (b.indirect) ++classes[number].indirect;
    Branch& branch = single[b.address];
    branch.number = number;
    branch.indirect = b.indirect;
    ++branch.executions;
    return branch;
  }
  /// It was executed, and is not seen to go on.
  void lose(const FollowedBranch& b) {
    count(b);
    ++classes[class_of(b)].unseen;
  }
  void settle(const FollowedBranch& b, LinearAddr to) {
    const auto taken = b.is_conditional() ? outcome(b, to) : std::optional(true);
    if (!taken || (!b.is_conditional() && !b.indirect && to != b.target)) return lose(b);
    Branch& branch = count(b);
    if (b.indirect) ++branch.targets[to];
    if (!*taken) return;
    ClassCounts& counts = classes[class_of(b)];
    ++counts.taken;
    ++branch.taken;
    if (to < b.next) ++counts.backward;
    const std::uint64_t forward = to.value - b.next.value;
    const std::uint64_t distance = to < b.next ? 0 - forward : forward;
    ++distances[static_cast<std::size_t>(std::bit_width(distance))];
  }
  void add(const Branches& later);
};

void Branches::add(const Branches& later) {
  for (std::size_t c = 0; c < std::size(kClasses); ++c) {
    classes[c].executions += later.classes[c].executions;
    classes[c].taken += later.classes[c].taken;
    classes[c].unseen += later.classes[c].unseen;
    classes[c].indirect += later.classes[c].indirect;
    classes[c].backward += later.classes[c].backward;
  }
  for (const auto& [address, theirs] : later.single) {
    Branch& mine = single[address];
    mine.number = theirs.number;
    mine.indirect = theirs.indirect;
    mine.executions += theirs.executions;
    mine.taken += theirs.taken;
    for (const auto& [target, times] : theirs.targets) mine.targets[target] += times;
  }
  for (std::size_t i = 0; i < distances.size(); ++i) distances[i] += later.distances[i];
}

class BranchesTool final : public Tool {
 public:
  explicit BranchesTool(std::size_t shown) : shown_(shown) {}

  Wants wants() const override { return {.executions = true, .events = true}; }
  void* code(const StaticBlock& block) override {
    return &ends_.emplace_back(BranchFollower::end_of(block));
  }
  void run(void* mine, const Execution& execution, const Context&) override {
    follower_.step(*static_cast<const BranchFollower::End*>(mine), execution,
                   [this](const FollowedBranch& b, LinearAddr to) { found_.settle(b, to); });
  }
  void event(const MachineEvent& event, const Context&) override {
    // INT n, INT3 and INTO are instructions, which are told themselves.
    const bool handler = event.kind == MachineEvent::Kind::delivered &&
                         event.delivery.kind != DeliveredEvent::Kind::software;
    if (!handler && event.kind != MachineEvent::Kind::window_closed) return;
    follower_.delivered([this](const FollowedBranch& b) { found_.lose(b); });
  }
  std::unique_ptr<Tool> part() const override { return std::make_unique<BranchesTool>(shown_); }
  void follow(Tool&& tool) override {
    auto& later = static_cast<BranchesTool&>(tool);
    follower_.follow(
        later.follower_, [this](const FollowedBranch& b, LinearAddr to) { found_.settle(b, to); },
        [this](const FollowedBranch& b) { found_.lose(b); });
    found_.add(later.found_);
  }
  void save(ByteWriter& out) const override;
  void load(ByteReader& in) override;
  void report(Report& out) const override {
    const FollowedBranch* const last = follower_.pending();
    if (last == nullptr) return report(found_, out);
    // The run ends with a branch.
    Branches found = found_;
    found.lose(*last);
    report(found, out);
  }

 private:
  void report(const Branches& found, Report& out) const;

  std::size_t shown_;
  std::deque<BranchFollower::End> ends_;
  BranchFollower follower_;
  Branches found_;
};

void BranchesTool::save(ByteWriter& out) const {
  follower_.save(out);
  for (const ClassCounts& c : found_.classes) {
    for (const std::uint64_t n : {c.executions, c.taken, c.unseen, c.indirect, c.backward}) {
      out.varint(n);
    }
  }
  for (const std::uint64_t n : found_.distances) out.varint(n);
  out.varint(found_.single.size());
  for (const auto& [address, b] : found_.single) {
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
  for (ClassCounts& c : found_.classes) {
    for (std::uint64_t* n : {&c.executions, &c.taken, &c.unseen, &c.indirect, &c.backward}) {
      *n = in.varint("count of a class");
    }
  }
  for (std::uint64_t& n : found_.distances) n = in.varint("count of a distance");
  const std::uint64_t count = in.varint("number of branches");
  for (std::uint64_t i = 0; i < count; ++i) {
    Branch& b = found_.single[load_address(in, "branch")];
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

void BranchesTool::report(const Branches& found, Report& out) const {
  std::array<std::uint64_t, std::size(kClasses)> different{};
  for (const auto& [address, b] : found.single) ++different[b.number];
  Table& classes = out.table("classes", "by class",
                             {{"class", "class", ""},
                              {"branches", "executions", ""},
                              {"distinct", "different", ""},
                              {"taken", "taken", ""},
                              {"backward", "of these backward", ""},
                              {"indirect", "indirect", ""},
                              {"unseen", "outcome unknown", ""}});
  for (std::size_t c = 0; c < std::size(kClasses); ++c) {
    const ClassCounts& k = found.classes[c];
    classes.row({std::string(kClasses[c]), k.executions, different[c], k.taken, k.backward,
                 k.indirect, k.unseen});
  }
  Table& distances = out.table("distances", "distances of taken branches",
                               {{"below", "below", "bytes"}, {"count", "count", ""}});
  for (std::size_t i = 0; i < found.distances.size(); ++i) {
    if (found.distances[i] != 0) distances.row({std::uint64_t{1} << i, found.distances[i]});
  }
  std::vector<std::pair<LinearAddr, const Branch*>> busiest;
  for (const auto& [address, b] : found.single) busiest.emplace_back(address, &b);
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
