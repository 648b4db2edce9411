// bbv: basic block vectors, one for each interval, as SimPoint clusters them. Formula and facts:
// docs/tools/bbv.md.

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "tools/analyses/branch_follower.h"
#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

/// Instructions by the block that they ran in: the address that control came to last.
using Vector = std::map<LinearAddr, std::uint64_t>;

class BbvTool final : public Tool {
 public:
  explicit BbvTool(std::uint64_t every) : every_(every) {}

  Wants wants() const override { return {.executions = true}; }
  void* code(const StaticBlock& block) override {
    const StaticInstruction& last = block.back();
    return &pieces_.emplace_back(
        Piece{block.front().linear, last.behind(), last.info.control_flow});
  }
  void run(void* mine, const Execution& execution, const Context&) override {
    const auto& piece = *static_cast<const Piece*>(mine);
    const Position first = execution.first();
    if (first.iteration != 0) return;
    if (!first_) {
      first_ = piece.begin;
    } else if (next_ != piece.begin || transferred_) {
      leader_ = piece.begin;
    }
    next_ = piece.end;
    transferred_ = piece.transfers;
    for (std::uint64_t i = first.instruction, end = i + execution.block().count(); i < end;) {
      const std::uint64_t stop = std::min(end, (i / every_ + 1) * every_);
      add(i / every_, leader_, stop - i);
      i = stop;
    }
  }
  std::unique_ptr<Tool> part() const override { return std::make_unique<BbvTool>(every_); }
  void follow(Tool&& tool) override;
  void save(ByteWriter& out) const override;
  void load(ByteReader& in) override;
  void report(Report& out) const override;

 private:
  struct Piece {
    LinearAddr begin, end;
    bool transfers = false;
  };
  /// nullopt: the block that was running when the part began.
  void add(std::uint64_t interval, const std::optional<LinearAddr>& leader, std::uint64_t n) {
    if (leader) {
      intervals_[interval][*leader] += n;
    } else {
      unknown_[interval] += n;
    }
  }
  /// What ran before control came to a place that was told: of the first part it begins where that
  /// does.
  std::map<std::uint64_t, Vector> all() const {
    std::map<std::uint64_t, Vector> whole = intervals_;
    for (const auto& [interval, n] : unknown_) whole[interval][*first_] += n;
    return whole;
  }

  std::uint64_t every_;
  std::deque<Piece> pieces_;
  std::optional<LinearAddr> first_;   ///< that ran
  std::optional<LinearAddr> leader_;  ///< of the block that runs
  LinearAddr next_;                   ///< after what ran last
  bool transferred_ = false;          ///< that may have gone elsewhere
  std::map<std::uint64_t, Vector> intervals_;
  std::map<std::uint64_t, std::uint64_t> unknown_;
};

void BbvTool::follow(Tool&& tool) {
  auto& later = static_cast<BbvTool&>(tool);
  if (!later.first_) return;
  if (!first_) {
    first_ = later.first_;
  } else if (next_ != *later.first_ || transferred_) {
    leader_ = later.first_;
  }
  for (const auto& [interval, n] : later.unknown_) add(interval, leader_, n);
  for (const auto& [interval, vector] : later.intervals_) {
    for (const auto& [leader, n] : vector) intervals_[interval][leader] += n;
  }
  if (later.leader_) leader_ = later.leader_;
  next_ = later.next_;
  transferred_ = later.transferred_;
}

void BbvTool::save(ByteWriter& out) const {
  out.u8(static_cast<std::uint8_t>((first_ ? 1 : 0) | (leader_ ? 2 : 0) | (transferred_ ? 4 : 0)));
  save_address(out, first_.value_or(LinearAddr{}));
  save_address(out, leader_.value_or(LinearAddr{}));
  save_address(out, next_);
  out.varint(unknown_.size());
  for (const auto& [interval, n] : unknown_) {
    out.varint(interval);
    out.varint(n);
  }
  out.varint(intervals_.size());
  for (const auto& [interval, vector] : intervals_) {
    out.varint(interval);
    out.varint(vector.size());
    for (const auto& [leader, n] : vector) {
      save_address(out, leader);
      out.varint(n);
    }
  }
}

void BbvTool::load(ByteReader& in) {
  const std::uint8_t flags = in.u8("what is known of blocks");
  const LinearAddr first = load_address(in, "first address"), leader = load_address(in, "block");
  if ((flags & 1) != 0) first_ = first;
  if ((flags & 2) != 0) leader_ = leader;
  transferred_ = (flags & 4) != 0;
  next_ = load_address(in, "after the last instruction");
  const std::uint64_t unknown = in.varint("number of intervals");
  for (std::uint64_t i = 0; i < unknown; ++i) {
    const std::uint64_t interval = in.varint("interval");
    unknown_[interval] = in.varint("instructions");
  }
  if (!unknown_.empty() && !first_) in.fail("expected a first address");
  const std::uint64_t intervals = in.varint("number of intervals");
  for (std::uint64_t i = 0; i < intervals; ++i) {
    Vector& vector = intervals_[in.varint("interval")];
    const std::uint64_t blocks = in.varint("number of blocks");
    for (std::uint64_t b = 0; b < blocks; ++b) {
      const LinearAddr address = load_address(in, "block");
      vector[address] = in.varint("instructions");
    }
  }
}

void BbvTool::report(Report& out) const {
  const auto whole = all();
  std::set<LinearAddr> blocks;
  for (const auto& [interval, vector] : whole) {
    for (const auto& [leader, n] : vector) blocks.insert(leader);
  }
  out.value("every", "instructions of an interval", every_);
  out.value("intervals", "intervals", std::uint64_t{whole.size()});
  out.value("blocks", "different blocks", std::uint64_t{blocks.size()});
  std::map<LinearAddr, std::uint64_t> number;
  for (const LinearAddr b : blocks) number.emplace(b, number.size() + 1);
  Table& vectors = out.table("vectors", "instructions by block, as SimPoint reads them",
                             {{"from", "from", "instruction"}, {"vector", "vector", ""}});
  for (const auto& [interval, vector] : whole) {
    std::string text = "T";
    for (const auto& [leader, n] : vector) text += fmt::format(":{}:{} ", number.at(leader), n);
    vectors.row({interval * every_, text});
  }
  Table& table = out.table("dimensions", "blocks by their numbers",
                           {{"number", "number", ""}, {"address", "address", ""}});
  for (const auto& [leader, n] : number) table.row({n, hexadecimal(leader.value)});
}

std::unique_ptr<Tool> make_bbv(ToolOptions& options, const Setup&) {
  return std::make_unique<BbvTool>(options.number("every", 100'000, 1, std::uint64_t{1} << 60));
}

}  // namespace

extern const ToolRow kBbvTool{"bbv",
                              "Make basic block vectors for SimPoint",
                              "every=N  instructions per interval (100000)\n",
                              "citcat analyze boot.citcat --tool bbv:every=1M --json",
                              ToolRow::Merging::exact,
                              make_bbv};

}  // namespace citcat::tools
