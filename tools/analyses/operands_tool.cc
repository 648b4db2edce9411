// operands: how instructions name their operands: addressing modes, registers, displacements,
// immediates, sizes. Formula and facts: docs/tools/operands.md.

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <string>

#include "tools/analyses/instruction_table.h"
#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

constexpr const char* kRegisters[] = {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"};
/// By the number that decoding gives them: RIP is after R15.
constexpr const char* kWideRegisters[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
                                          "rsi", "rdi", "r8",  "r9",  "r10", "r11",
                                          "r12", "r13", "r14", "r15", "rip"};
constexpr const char* kSegmentNames[] = {"es", "cs", "ss", "ds", "fs", "gs"};

/// Rows of one table.
using Tally = std::map<std::string, std::uint64_t>;

/// What one instruction adds to the tables, by table and row.
using Traits = std::vector<std::pair<std::size_t, std::string>>;

enum : std::size_t {
  kLength,
  kSize,
  kMode,
  kBase,
  kIndex,
  kDisplacement,
  kImmediate,
  kPrefix,
  kTables
};
struct TableName {
  const char *key, *title, *row;
};
constexpr TableName kTableNames[kTables] = {
    {"length", "bytes of an instruction", "bytes"},
    {"operand_size", "operand size", "bytes"},
    {"mode", "addressing modes of explicit memory operands", "mode"},
    {"base", "base registers", "register"},
    {"index", "index registers", "register"},
    {"displacement", "displacements, by bits with sign", "bits"},
    {"immediate", "immediates, by bits with sign", "bits"},
    {"prefix", "prefixes", "prefix"}};

/// Bits that a number takes as one with a sign.
std::string signed_bits(std::int64_t value) {
  const auto magnitude = static_cast<std::uint64_t>(value < 0 ? ~value : value);
  const int bits = value == 0 ? 0 : static_cast<int>(std::bit_width(magnitude)) + 1;
  return (bits < 10 ? "0" : "") + std::to_string(bits);
}

std::string two_digits(unsigned n) { return (n < 10 ? "0" : "") + std::to_string(n); }

bool takes_immediate(OperandForm form, bool bits64) {
  return form == OperandForm::Ib || form == OperandForm::Iw || form == OperandForm::Ibs ||
         form == OperandForm::Iz || (bits64 && form == OperandForm::Iv);
}

void memory_traits(const MemoryOperand& operand, bool bits64, Traits& traits) {
  std::string mode;
  switch (operand.kind) {
    case OperandKind::address:
    case OperandKind::address_after_pop:
    case OperandKind::bit_string:
      mode = operand.base >= 0 ? "base" : "";
      if (operand.index >= 0) {
        mode += mode.empty() ? "index" : "+index";
        if (operand.shift != 0) mode += "*" + std::to_string(1u << operand.shift);
      }
      if (operand.displacement != 0 || mode.empty()) {
        mode += mode.empty() ? "displacement" : "+displacement";
      }
      break;
    case OperandKind::absolute:
      mode = "displacement";
      break;
    case OperandKind::table:
      mode = "xlat";
      break;
    case OperandKind::string_source:
    case OperandKind::string_destination:
      mode = "string";
      break;
    case OperandKind::stack_push:
    case OperandKind::stack_pop:
    case OperandKind::frame:
      mode = "stack";
      break;
  }
  traits.emplace_back(kMode, mode);
  const bool is_explicit =
      operand.kind == OperandKind::address || operand.kind == OperandKind::address_after_pop ||
      operand.kind == OperandKind::bit_string || operand.kind == OperandKind::absolute;
  if (!is_explicit) return;
  const char* const* const registers = bits64 ? kWideRegisters : kRegisters;
  if (operand.base >= 0) traits.emplace_back(kBase, registers[operand.base]);
  if (operand.index >= 0) traits.emplace_back(kIndex, registers[operand.index]);
  traits.emplace_back(
      kDisplacement,
      signed_bits(bits64 ? operand.displacement : static_cast<std::int32_t>(operand.displacement)));
}

/// With its sign. One of eight bytes ends the instruction, and DecodedInstruction has half of it.
std::int64_t immediate_of(const DecodedInstruction& info, OperandForm form) {
  if (form == OperandForm::Ib || form == OperandForm::Ibs) {
    return static_cast<std::int8_t>(info.immediate);
  }
  if (info.operand_bytes == 2 || form == OperandForm::Iw) {
    return static_cast<std::int16_t>(info.immediate);
  }
  if (info.operand_bytes != 8 || form != OperandForm::Iv) {
    return static_cast<std::int32_t>(info.immediate);
  }
  std::int64_t value = 0;
  std::memcpy(&value, &info.bytes[info.length - sizeof value], sizeof value);
  return value;
}

Traits traits_of(const DecodedInstruction& info) {
  Traits traits;
  traits.emplace_back(kLength, two_digits(info.length));
  if (info.operand_bytes != 0) traits.emplace_back(kSize, std::to_string(info.operand_bytes));
  for (unsigned i = 0; i < info.operand_count; ++i)
    memory_traits(info.operands[i], info.bits64, traits);
  if (info.row != nullptr) {
    for (const OperandForm form : info.row->operands) {
      if (!takes_immediate(form, info.bits64)) continue;
      traits.emplace_back(kImmediate, signed_bits(immediate_of(info, form)));
      break;
    }
  }
  if (info.operand_prefix) traits.emplace_back(kPrefix, "operand size");
  if (info.address_prefix) traits.emplace_back(kPrefix, "address size");
  if (info.rex != 0) traits.emplace_back(kPrefix, "rex");
  if (info.lock) traits.emplace_back(kPrefix, "lock");
  if (info.is_repeated()) traits.emplace_back(kPrefix, "repeat");
  if (info.segment_override >= 0) {
    traits.emplace_back(kPrefix, kSegmentNames[info.segment_override]);
  }
  return traits;
}

class OperandsTool final : public Tool {
 public:
  Wants wants() const override { return {.counts = true}; }
  void* code(const StaticBlock& block) override { return &pieces_.emplace_back(Piece{&block}); }
  void counted(void* mine, std::uint64_t executions) override {
    static_cast<Piece*>(mine)->executions += executions;
  }
  void iterated(void* mine, std::uint64_t begun, std::uint64_t) override {
    static_cast<Piece*>(mine)->executions += begun;
  }
  std::unique_ptr<Tool> part() const override { return std::make_unique<OperandsTool>(); }
  void follow(Tool&& tool) override {
    const auto theirs = static_cast<const OperandsTool&>(tool).all();
    for (std::size_t t = 0; t < kTables; ++t) {
      for (const auto& [row, n] : theirs[t]) merged_[t][row] += n;
    }
  }
  void save(ByteWriter& out) const override {
    for (const Tally& tally : all()) {
      out.varint(tally.size());
      for (const auto& [row, n] : tally) {
        out.string(row);
        out.varint(n);
      }
    }
  }
  void load(ByteReader& in) override {
    for (Tally& tally : merged_) {
      const std::uint64_t rows = in.varint("number of rows");
      for (std::uint64_t i = 0; i < rows; ++i) {
        const std::string row = in.string("row", 64);
        tally[row] = in.varint("count");
      }
    }
  }
  void report(Report& out) const override {
    const auto tables = all();
    for (std::size_t t = 0; t < kTables; ++t) {
      std::uint64_t sum = 0;
      for (const auto& [row, n] : tables[t]) sum += n;
      Table& table = out.table(kTableNames[t].key, kTableNames[t].title,
                               {{kTableNames[t].row, kTableNames[t].row, ""},
                                {"count", "executions", ""},
                                {"percent", "share", "%"}});
      for (const auto& [row, n] : tables[t]) {
        table.row({row, n, 100.0 * static_cast<double>(n) / static_cast<double>(sum)});
      }
    }
  }

 private:
  struct Piece {
    const StaticBlock* block;
    std::uint64_t executions = 0;
  };
  std::array<Tally, kTables> all() const {
    std::array<Tally, kTables> tables = merged_;
    for (const Piece& piece : pieces_) {
      if (piece.executions == 0) continue;
      for (const StaticInstruction& i : piece.block->instructions()) {
        for (const auto& [table, row] : traits_of(i.info)) tables[table][row] += piece.executions;
      }
    }
    return tables;
  }

  std::deque<Piece> pieces_;
  std::array<Tally, kTables> merged_;
};

std::unique_ptr<Tool> make_operands(ToolOptions&, const Setup&) {
  return std::make_unique<OperandsTool>();
}

}  // namespace

extern const ToolRow kOperandsTool{"operands",
                                   "Count addressing modes, registers, immediates and prefixes",
                                   "",
                                   "citcat analyze boot.citcat --tool operands --where level=3",
                                   ToolRow::Merging::exact,
                                   make_operands};

}  // namespace citcat::tools
