// coverage: which code ran at all. Formula and facts: docs/tools/coverage.md.

#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

class CoverageTool final : public Tool {
 public:
  explicit CoverageTool(std::size_t shown) : shown_(shown) {}

  Wants wants() const override { return {.counts = true}; }
  void* code(const StaticBlock& block) override { return &pieces_.emplace_back(Piece{&block}); }
  void counted(void* mine, std::uint64_t) override { static_cast<Piece*>(mine)->ran = true; }
  void iterated(void* mine, std::uint64_t, std::uint64_t) override {
    static_cast<Piece*>(mine)->ran = true;
  }
  std::unique_ptr<Tool> part() const override { return std::make_unique<CoverageTool>(shown_); }
  void follow(Tool&& tool) override {
    for (const auto& [begin, length] : static_cast<const CoverageTool&>(tool).all()) {
      add(merged_, begin, length);
    }
  }
  void save(ByteWriter& out) const override {
    const Instructions ran = all();
    out.varint(ran.size());
    for (const auto& [begin, length] : ran) {
      out.varint(begin);
      out.u8(length);
    }
  }
  void load(ByteReader& in) override {
    const std::uint64_t count = in.varint("number of instructions");
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto begin = in.varint("address");
      add(merged_, begin, static_cast<std::uint8_t>(in.count("length", kMaxInstructionBytes)));
    }
  }
  void report(Report& out) const override {
    const Instructions ran = all();
    struct Range {
      std::uint64_t begin, end, instructions;
    };
    std::vector<Range> ranges;
    std::uint64_t bytes = 0;
    for (const auto& [begin, length] : ran) {
      const std::uint64_t end = begin + length;
      if (ranges.empty() || begin > ranges.back().end) ranges.push_back({begin, begin, 0});
      Range& r = ranges.back();
      bytes += end > r.end ? end - std::max(r.end, begin) : 0;
      r.end = std::max(r.end, end);
      ++r.instructions;
    }
    out.value("instructions", "different instructions", std::uint64_t{ran.size()});
    out.value("bytes", "bytes of code", bytes, "bytes");
    out.value("ranges", "ranges", std::uint64_t{ranges.size()});
    Table& table = out.table(
        "executed", "what ran",
        {{"begin", "from", ""}, {"end", "up to before", ""}, {"instructions", "instructions", ""}});
    for (std::size_t i = 0; i < std::min(shown_, ranges.size()); ++i) {
      table.row({hexadecimal(ranges[i].begin), hexadecimal(ranges[i].end), ranges[i].instructions});
    }
  }

 private:
  /// Lengths by linear address: of several at one address the longest.
  using Instructions = std::map<std::uint64_t, std::uint8_t>;
  struct Piece {
    const StaticBlock* block;
    bool ran = false;
  };
  static void add(Instructions& to, std::uint64_t begin, std::uint8_t length) {
    std::uint8_t& known = to[begin];
    known = std::max(known, length);
  }
  Instructions all() const {
    Instructions ran = merged_;
    for (const Piece& p : pieces_) {
      if (!p.ran) continue;
      for (const StaticInstruction& i : p.block->instructions()) {
        add(ran, i.linear.value, i.info.length);
      }
    }
    return ran;
  }

  std::size_t shown_;
  std::deque<Piece> pieces_;
  Instructions merged_;
};

std::unique_ptr<Tool> make_coverage(ToolOptions& options, const Setup&) {
  return std::make_unique<CoverageTool>(options.number("show", 1u << 24, 0, 1u << 24));
}

}  // namespace

extern const ToolRow kCoverageTool{"coverage",
                                   "List the code that ran",
                                   "show=N  show the first N ranges (all)\n",
                                   "citcat analyze boot.citcat --tool coverage --json",
                                   ToolRow::Merging::exact,
                                   make_coverage};

}  // namespace citcat::tools
