// count: how often each instruction ran; from that the mix of mnemonics and the blocks where the
// time goes. Formula and facts: docs/tools/count.md.

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "tools/analyses/instruction_table.h"
#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

struct Counts {
  std::uint64_t executions = 0;  ///< of a REP: begun, again after an interruption too
  std::uint64_t further = 0;     ///< iterations of a REP after the first
  Counts& operator+=(const Counts& o) {
    executions += o.executions;
    further += o.further;
    return *this;
  }
};

/// Instructions that lie one after the other and ran equally often; only the last may transfer
/// control. Defined by these counts alone, it does not depend on where a run was cut.
struct Block {
  LinearAddr begin;
  std::uint64_t instructions = 0, executions = 0;
  std::uint64_t weight() const { return instructions * executions; }
};

/// Rows of the mix by class.
const char* class_name(InstructionClass kind) {
  switch (kind) {
    case InstructionClass::plain:
      return "plain";
    case InstructionClass::string:
      return "string";
    case InstructionClass::in:
    case InstructionClass::out:
    case InstructionClass::ins:
    case InstructionClass::outs:
      return "port";
    case InstructionClass::jcc:
    case InstructionClass::loop:
      return "conditional branch";
    case InstructionClass::jump:
    case InstructionClass::far_jump:
      return "jump";
    case InstructionClass::call:
    case InstructionClass::far_call:
      return "call";
    case InstructionClass::ret:
    case InstructionClass::far_return:
      return "return";
    case InstructionClass::int_n:
    case InstructionClass::int3:
    case InstructionClass::into:
    case InstructionClass::icebp:
    case InstructionClass::sysenter:
    case InstructionClass::syscall:
      return "system call";
    case InstructionClass::iret:
    case InstructionClass::sysexit:
    case InstructionClass::sysret:
    case InstructionClass::rsm:
      return "return from interrupt";
    case InstructionClass::push_segment:
    case InstructionClass::pop_segment:
    case InstructionClass::mov_to_segment:
    case InstructionClass::load_far_pointer:
      return "segment register";
    case InstructionClass::x87:
    case InstructionClass::fwait:
    case InstructionClass::fxsave:
    case InstructionClass::fxrstor:
    case InstructionClass::xsave:
    case InstructionClass::xrstor:
      return "x87";
    case InstructionClass::mmx:
    case InstructionClass::emms:
      return "mmx";
    case InstructionClass::sse_fp:
    case InstructionClass::sse:
    case InstructionClass::ldmxcsr:
    case InstructionClass::stmxcsr:
      return "sse";
    default:
      return "system";
  }
}

class CountTool final : public Tool {
 public:
  CountTool(std::size_t shown, std::size_t listed) : shown_(shown), listed_(listed) {}

  Wants wants() const override { return {.counts = true}; }
  void* code(const StaticBlock& block) override {
    pieces_.push_back({&block, {}});
    return &pieces_.back();
  }
  void counted(void* mine, std::uint64_t executions) override {
    static_cast<Piece*>(mine)->counts.executions += executions;
  }
  void iterated(void* mine, std::uint64_t begun, std::uint64_t further) override {
    static_cast<Piece*>(mine)->counts += Counts{begun, further};
  }
  void interrupted(void*, std::uint64_t times) override { interrupted_ += times; }

  std::unique_ptr<Tool> part() const override {
    return std::make_unique<CountTool>(shown_, listed_);
  }
  void follow(Tool&& later) override {
    auto& other = static_cast<CountTool&>(later);
    for (const auto& [key, counts] : other.table()) add(key, counts);
    interrupted_ += other.interrupted_;
  }
  void save(ByteWriter& out) const override {
    const Table_ all = table();
    out.varint(interrupted_);
    out.varint(all.size());
    for (const auto& [key, counts] : all) {
      key.save(out);
      out.varint(counts.executions);
      out.varint(counts.further);
    }
  }
  void load(ByteReader& in) override {
    interrupted_ = in.varint("interrupted instructions");
    const std::uint64_t count = in.varint("number of instructions");
    for (std::uint64_t i = 0; i < count; ++i) {
      const InstructionKey key = InstructionKey::load(in);
      Counts counts;
      counts.executions = in.varint("executions");
      counts.further = in.varint("iterations");
      add(key, counts);
    }
  }
  void report(Report& out) const override;

 private:
  using Table_ = std::map<InstructionKey, Counts>;
  struct Piece {
    const StaticBlock* block;
    Counts counts;
  };

  void add(const InstructionKey& key, const Counts& counts) { merged_[key] += counts; }
  /// The table of everything that ran, later parts included.
  Table_ table() const {
    Table_ all = merged_;
    for (const Piece& piece : pieces_) {
      if (piece.counts.executions == 0 && piece.counts.further == 0) continue;
      for (const StaticInstruction& i : piece.block->instructions()) {
        all[InstructionKey::of(i)] += piece.counts;
      }
    }
    return all;
  }
  static std::vector<Block> blocks_of(const Table_& table);
  static void report_mix(const Table_& table, Report& out);
  void report_blocks(const Table_& table, Report& out) const;
  void report_listing(const Table_& table, Report& out) const;

  std::size_t shown_;   ///< blocks in the report
  std::size_t listed_;  ///< instructions in the report
  std::deque<Piece> pieces_;
  Table_ merged_;
  std::uint64_t interrupted_ = 0;
};

std::vector<Block> CountTool::blocks_of(const Table_& table) {
  std::vector<Block> blocks;
  LinearAddr next;
  bool goes_on = false;
  for (const auto& [key, counts] : table) {
    const bool same =
        goes_on && key.linear == next && blocks.back().executions == counts.executions;
    if (!same) blocks.push_back({key.linear, 0, counts.executions});
    ++blocks.back().instructions;
    next = key.behind();
    goes_on = !key.decoded().control_flow;
  }
  return blocks;
}

/// Rows of name and count, the largest first.
void mix_table(const std::map<std::string, std::uint64_t>& mix, std::uint64_t all, Table& table) {
  std::vector<std::pair<std::string, std::uint64_t>> rows(mix.begin(), mix.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [name, count] : rows) {
    table.row({name, count, 100.0 * static_cast<double>(count) / static_cast<double>(all)});
  }
}

void CountTool::report_mix(const Table_& table, Report& out) {
  std::map<std::string, std::uint64_t> mnemonics, classes;
  std::uint64_t all = 0;
  for (const auto& [key, counts] : table) {
    mnemonics[mnemonic_of(key.text())] += counts.executions;
    classes[class_name(key.decoded().kind)] += counts.executions;
    all += counts.executions;
  }
  mix_table(
      mnemonics, all,
      out.table(
          "mix", "mix",
          {{"mnemonic", "mnemonic", ""}, {"count", "executions", ""}, {"percent", "share", "%"}}));
  mix_table(
      classes, all,
      out.table("classes", "mix by class",
                {{"class", "class", ""}, {"count", "executions", ""}, {"percent", "share", "%"}}));
}

void CountTool::report_blocks(const Table_& table, Report& out) const {
  std::vector<Block> blocks = blocks_of(table);
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const Block& a, const Block& b) { return a.weight() > b.weight(); });
  std::uint64_t executed = 0, all = 0, longest = 0;
  for (const Block& b : blocks) {
    executed += b.executions;
    all += b.weight();
    longest = std::max(longest, b.instructions);
  }
  std::uint64_t covered = 0, needed = 0;
  for (const Block& b : blocks) {
    if (10 * covered >= 9 * all) break;
    covered += b.weight();
    ++needed;
  }
  Report& group = out.group("blocks", "blocks");
  group.value("static", "different blocks", std::uint64_t{blocks.size()});
  group.value("executed", "executed", executed);
  group.value("longest", "longest", longest, "instructions");
  group.value("for_90_percent", "make 90 % of the executions", needed);
  Table& hottest = group.table("hottest", "where most executions are",
                               {{"address", "address", ""},
                                {"instructions", "instructions", ""},
                                {"executions", "executions", ""},
                                {"percent", "share", "%"}});
  for (std::size_t i = 0; i < std::min(shown_, blocks.size()); ++i) {
    const Block& b = blocks[i];
    hottest.row({hexadecimal(b.begin.value), b.instructions, b.executions,
                 100.0 * static_cast<double>(b.weight()) / static_cast<double>(all)});
  }
}

/// The instructions that were executed most often, as they lie in memory.
void CountTool::report_listing(const Table_& table, Report& out) const {
  std::vector<const Table_::value_type*> rows;
  for (const auto& row : table) rows.push_back(&row);
  const std::size_t shown = std::min(listed_, rows.size());
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) {
    return a->second.executions > b->second.executions;
  });
  rows.resize(shown);
  std::sort(rows.begin(), rows.end(),
            [](const auto* a, const auto* b) { return a->first < b->first; });
  Table& listing = out.table("listing", "instructions with most executions",
                             {{"address", "address", ""},
                              {"bytes", "bytes", ""},
                              {"text", "instruction", ""},
                              {"executions", "executions", ""},
                              {"iterations", "further iterations", ""}});
  for (const auto* row : rows) {
    listing.row({hexadecimal(row->first.linear.value), row->first.bytes_text(), row->first.text(),
                 row->second.executions, row->second.further});
  }
}

void CountTool::report(Report& out) const {
  const Table_ all = table();
  Counts sum;
  for (const auto& [key, counts] : all) sum += counts;
  out.value("instructions", "instructions", sum.executions - interrupted_);
  out.value("executions", "executions", sum.executions);
  out.value("iterations", "further iterations of REP", sum.further);
  out.value("static_instructions", "different instructions", std::uint64_t{all.size()});
  report_mix(all, out);
  report_blocks(all, out);
  if (listed_ != 0) report_listing(all, out);
}

std::unique_ptr<Tool> make_count(ToolOptions& options, const Setup&) {
  return std::make_unique<CountTool>(options.number("blocks", 20, 0, 1u << 20),
                                     options.number("listing", 0, 0, 1u << 20));
}

}  // namespace

extern const ToolRow kCountTool{"count",
                                "Count instructions, by mnemonic and by block",
                                "blocks=N   show the N blocks with the most executions (20)\n"
                                "listing=N  list the N instructions with the most executions (0)\n",
                                "citcat analyze boot.citcat --tool count",
                                ToolRow::Merging::exact,
                                make_count};

}  // namespace citcat::tools
