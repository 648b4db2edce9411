// count: how often each instruction ran; from that the mix of mnemonics and the blocks where the
// time goes. Formula and facts: docs/tools/count.md.

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
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

/// What the report needs of an instruction besides its counts. It does not depend on where the
/// instruction lies.
struct Facts {
  std::string mnemonic;
  InstructionClass kind = InstructionClass::plain;
  bool control_flow = false;
};

/// The facts of each instruction, made once for all that consist of the same bytes.
class KnownFacts {
 public:
  const Facts& of(const InstructionKey& key) {
    std::string bytes(1, static_cast<char>(key.bits));
    bytes.append(reinterpret_cast<const char*>(key.bytes.data()), facts_bytes(key));
    const auto [at, added] = facts_.try_emplace(std::move(bytes));
    if (added) {
      const DecodedInstruction decoded = key.decoded();
      at->second = {mnemonic_of(key.text()), decoded.kind, decoded.control_flow};
    }
    return at->second;
  }

 private:
  /// How many of its bytes the facts depend on: the distance of a plain near branch is not among
  /// them.
  static std::size_t facts_bytes(const InstructionKey& key) {
    constexpr std::size_t kShort = 2, kNear = 5, kNearIf = 6;
    if (key.bits == 16) return key.length;
    const unsigned first = key.bytes[0];
    if (key.length == kShort && ((first & 0xf0u) == 0x70 || first == 0xeb)) return 1;
    if (key.length == kNear && (first == 0xe8 || first == 0xe9)) return 1;
    if (key.length == kNearIf && first == 0x0f && (key.bytes[1] & 0xf0u) == 0x80) return 2;
    return key.length;
  }

  std::unordered_map<std::string, Facts> facts_;
};

struct Row {
  InstructionKey key;
  Counts counts;
  const Facts* facts = nullptr;  ///< null until it is asked for
};

/// In the order of the keys, each once.
using CountTable = std::vector<Row>;

/// Sorts the rows by their keys, and makes one row of those with the same key.
void settle(CountTable& rows) {
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.key < b.key; });
  std::size_t settled = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (settled != 0 && rows[settled - 1].key == rows[i].key) {
      rows[settled - 1].counts += rows[i].counts;
    } else {
      rows[settled++] = rows[i];
    }
  }
  rows.resize(settled);
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
    for (const Row& row : other.table()) add(row.key, row.counts);
    interrupted_ += other.interrupted_;
  }
  void save(ByteWriter& out) const override {
    const CountTable all = table();
    out.varint(interrupted_);
    out.varint(all.size());
    for (const Row& row : all) {
      row.key.save(out);
      out.varint(row.counts.executions);
      out.varint(row.counts.further);
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
  struct Piece {
    const StaticBlock* block;
    Counts counts;
  };

  void add(const InstructionKey& key, const Counts& counts) { merged_[key] += counts; }
  CountTable table() const;
  static std::vector<Block> blocks_of(const CountTable& table);
  static void report_mix(const CountTable& table, Report& out);
  void report_blocks(const CountTable& table, Report& out) const;
  void report_listing(const CountTable& table, Report& out) const;

  std::size_t shown_;   ///< blocks in the report
  std::size_t listed_;  ///< instructions in the report
  std::deque<Piece> pieces_;
  std::map<InstructionKey, Counts> merged_;
  std::uint64_t interrupted_ = 0;
};

/// The table of everything that ran, later parts included.
CountTable CountTool::table() const {
  CountTable all;
  for (const auto& [key, counts] : merged_) all.push_back({key, counts});
  for (const Piece& piece : pieces_) {
    if (piece.counts.executions == 0 && piece.counts.further == 0) continue;
    for (const StaticInstruction& i : piece.block->instructions()) {
      all.push_back({InstructionKey::of(i), piece.counts});
    }
  }
  settle(all);
  return all;
}

std::vector<Block> CountTool::blocks_of(const CountTable& table) {
  std::vector<Block> blocks;
  LinearAddr next;
  bool goes_on = false;
  for (const auto& [key, counts, facts] : table) {
    const bool same =
        goes_on && key.linear == next && blocks.back().executions == counts.executions;
    if (!same) blocks.push_back({key.linear, 0, counts.executions});
    ++blocks.back().instructions;
    next = key.behind();
    goes_on = !facts->control_flow;
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

void CountTool::report_mix(const CountTable& table, Report& out) {
  std::unordered_map<const Facts*, std::uint64_t> executions;
  std::uint64_t all = 0;
  for (const Row& row : table) {
    executions[row.facts] += row.counts.executions;
    all += row.counts.executions;
  }
  std::map<std::string, std::uint64_t> mnemonics, classes;
  for (const auto& [facts, count] : executions) {
    mnemonics[facts->mnemonic] += count;
    classes[class_name(facts->kind)] += count;
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

void CountTool::report_blocks(const CountTable& table, Report& out) const {
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
void CountTool::report_listing(const CountTable& table, Report& out) const {
  std::vector<const Row*> rows;
  rows.reserve(table.size());
  for (const Row& row : table) rows.push_back(&row);
  const auto shown = static_cast<std::ptrdiff_t>(std::min(listed_, rows.size()));
  // The rows of the table are in order: those with as many executions stay so.
  std::partial_sort(rows.begin(), rows.begin() + shown, rows.end(), [](const Row* a, const Row* b) {
    if (a->counts.executions != b->counts.executions)
      return a->counts.executions > b->counts.executions;
    return a < b;
  });
  rows.resize(static_cast<std::size_t>(shown));
  std::sort(rows.begin(), rows.end());
  Table& listing = out.table("listing", "instructions with most executions",
                             {{"address", "address", ""},
                              {"bytes", "bytes", ""},
                              {"text", "instruction", ""},
                              {"executions", "executions", ""},
                              {"iterations", "further iterations", ""}});
  for (const Row* row : rows) {
    listing.row({hexadecimal(row->key.linear.value), row->key.bytes_text(), row->key.text(),
                 row->counts.executions, row->counts.further});
  }
}

void CountTool::report(Report& out) const {
  CountTable all = table();
  KnownFacts known;
  Counts sum;
  for (Row& row : all) {
    row.facts = &known.of(row.key);
    sum += row.counts;
  }
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
