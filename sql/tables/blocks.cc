// blocks: adjacent instructions that ran equally often.

#include <algorithm>
#include <map>

#include "sql/tables/row_filters.h"
#include "sql/tables/table.h"
#include "tools/analyses/instruction_table.h"

namespace citcat::sql {
namespace {

using enum Column::Type;
using enum Column::Use;

constexpr int kBlockAddress = 0, kBlockInstructions = 1, kBlockExecutions = 2, kBlockBytes = 3,
              kBlockSymbol = 4;

constexpr Column kBlockColumns[] = {
    {Column::Type::address, none, "address", "linear address of its first byte"},
    {integer, none, "instructions", "how many it has; only the last one may transfer control"},
    {integer, none, "executions", "how often it ran"},
    {integer, none, "size", "bytes"},
    {text, none, "symbol", "procedure that contains it, with the offset"},
};

struct CodeBlock {
  LinearAddr begin;
  std::uint64_t instructions = 0, executions = 0, bytes = 0;
};

std::vector<CodeBlock> blocks_of(const std::map<tools::InstructionKey, std::uint64_t>& counts) {
  std::vector<CodeBlock> blocks;
  LinearAddr next;
  bool goes_on = false;
  for (const auto& [key, count] : counts) {
    const bool same = goes_on && key.linear == next && blocks.back().executions == count;
    if (!same) blocks.push_back({key.linear, 0, count, 0});
    ++blocks.back().instructions;
    blocks.back().bytes += key.length;
    next = key.behind();
    goes_on = !key.decoded().control_flow;
  }
  return blocks;
}

class BlockCursor final : public Cursor {
 public:
  explicit BlockCursor(RowSource& source) : source_(source) {}
  void filter(const Constraints&) override {
    at_ = ~std::size_t{0};
    if (!blocks_.empty()) return;
    CountNeeds needs;
    needs.instructions = needs.code = true;
    std::map<tools::InstructionKey, std::uint64_t> counts;
    const Counts counted = source_.count(needs, {});
    for (const InstructionCount& c : counted.instructions) {
      for (const auto& i : c.code->block().instructions()) {
        counts[tools::InstructionKey::of(i)] += c.count;
      }
    }
    blocks_ = blocks_of(counts);
  }
  bool next() override { return ++at_ < blocks_.size(); }
  Cell cell(int column) override {
    const CodeBlock& block = blocks_[at_];
    switch (column) {
      case kBlockAddress:
        return Cell::of(block.begin.value);
      case kBlockInstructions:
        return Cell::of(block.instructions);
      case kBlockExecutions:
        return Cell::of(block.executions);
      case kBlockBytes:
        return Cell::of(block.bytes);
      case kBlockSymbol:
        return symbol_cell(source_, block.begin, nullptr, scratch_);
      default:
        return Cell::null();
    }
  }
  RowKey key() const override { return {at_}; }

 private:
  RowSource& source_;
  std::vector<CodeBlock> blocks_;
  std::size_t at_ = 0;
  std::string scratch_;
};

class BlocksTable final : public Table {
 public:
  BlocksTable()
      : Table("blocks", "Code that runs as a whole: adjacent instructions that ran equally often",
              kBlockColumns) {}
  double rows(const RowSource&) const override { return 1e4; }
  std::unique_ptr<Cursor> open(RowSource& source) const override {
    return std::make_unique<BlockCursor>(source);
  }
};

const BlocksTable kBlocksInstance;

}  // namespace

const Table& kBlocksTable = kBlocksInstance;

}  // namespace citcat::sql
