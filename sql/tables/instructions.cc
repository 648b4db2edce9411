// instructions: one row for each instruction that completed.

#include <algorithm>

#include "formats/io/error.h"
#include "sql/tables/row_filters.h"
#include "sql/tables/table.h"
#include "tools/analyses/instruction_table.h"

namespace citcat::sql {
namespace {

enum InstructionColumn : int {
  kInstructionPosition,
  kInstructionAddress,
  kInstructionBytes,
  kInstructionMnemonic,
  kInstructionProcess,
  kInstructionLevel,
  kInstructionText,
  kInstructionSize,
  kInstructionMode,
  kInstructionPhysical,
  kInstructionIterations,
  kInstructionSymbol,
  kInstructionRows,
};

using enum Column::Type;
using enum Column::Use;

constexpr Column kInstructionColumns[] = {
    {integer, exact, "position", "instructions completed before it, from 0"},
    {Column::Type::address, exact, "address", "linear address of its first byte"},
    {text, none, "bytes", "its bytes, hexadecimal"},
    {text, none, "mnemonic", "without prefixes and operands"},
    {text, exact, "process", "name of the running process, or its page tables (CR3)"},
    {integer, exact, "level", "privilege level, 0 to 3"},
    {text, none, "text", "disassembled, in Intel syntax"},
    {integer, none, "size", "bytes"},
    {integer, none, "mode", "size of its code segment: 16, 32 or 64"},
    {Column::Type::address, none, "physical", "physical address of its first byte"},
    {integer, none, "iterations", "iterations of a REP string instruction, else NULL"},
    {text, none, "symbol", "procedure that contains it, with the offset"},
    {integer, none, "rows", "instructions that the row stands for: 1"},
};

/// What depends on the code alone.
Cell code_cell(int column, const CodePiece& code, std::uint32_t i, const RowSource& source,
               const std::string* process, std::string& scratch) {
  const tools::StaticInstruction& instruction = code.block()[i];
  switch (column) {
    case kInstructionAddress:
      return Cell::of(instruction.linear.value);
    case kInstructionBytes:
      return Cell::lasting(code.text(i).bytes);
    case kInstructionMnemonic:
      return Cell::lasting(code.text(i).mnemonic);
    case kInstructionText:
      return Cell::lasting(code.text(i).text);
    case kInstructionSize:
      return Cell::of(instruction.info.length);
    case kInstructionMode:
      return Cell::of(tools::segment_bits(instruction.info));
    case kInstructionPhysical:
      return Cell::of(instruction.physical.value);
    case kInstructionSymbol:
      return symbol_cell(source, instruction.linear, process, scratch);
    default:
      return Cell::null();
  }
}

class InstructionCursor final : public Cursor {
 public:
  explicit InstructionCursor(RowSource& source) : source_(source) { source_.add_reader(); }
  ~InstructionCursor() override { source_.remove_reader(); }

  void filter(const Constraints& constraints) override {
    filter_ = row_filter(constraints, kInstructionPosition, kInstructionLevel, kInstructionAddress,
                         -1, kInstructionProcess);
    ended_ = !begin_of_positions(filter_, position_);
    if (!ended_) enter(source_.stretch_at(position_, filter_));
  }

  bool next() override {
    for (;;) {
      if (ended_) return false;
      if (run_ == end_) {
        if (!go_on()) return false;
        continue;
      }
      if (++in_run_ == run_->code->count()) {
        ++run_;
        in_run_ = kBefore;
        continue;
      }
      const std::uint64_t at = run_->first + in_run_;
      if (at < position_) continue;
      if (!filter_.positions.has(at)) {
        ended_ = true;
        return false;
      }
      if (is_plain_ || satisfies()) return true;
    }
  }

  Cell cell(int column) override {
    const ContextTable::Entry& context = source_.contexts()[run_->context];
    switch (column) {
      case kInstructionPosition:
        return Cell::of(run_->first + in_run_);
      case kInstructionProcess:
        return Cell::lasting(*context.process);
      case kInstructionLevel:
        return level_cell(context);
      case kInstructionIterations:
        return run_->code->repeats() ? Cell::of(run_->iterations) : Cell::null();
      case kInstructionRows:
        return Cell::of(1);
      default:
        return code_cell(column, *run_->code, in_run_, source_, context.process, scratch_);
    }
  }
  RowKey key() const override { return {run_->first + in_run_}; }

 private:
  static constexpr std::uint32_t kBefore = ~std::uint32_t{0};

  bool satisfies() const {
    return filter_.has(source_.contexts()[run_->context]) &&
           filter_.addresses.has(run_->code->block()[in_run_].linear.value);
  }
  void enter(std::shared_ptr<const Stretch> stretch) {
    stretch_ = std::move(stretch);
    ended_ = stretch_ == nullptr;
    if (ended_) return;
    const auto& runs = stretch_->rows.instructions;
    run_ = runs.data() +
           (std::partition_point(runs.begin(), runs.end(),
                                 [&](const InstructionRun& r) { return r.end() <= position_; }) -
            runs.begin());
    end_ = runs.data() + runs.size();
    in_run_ = kBefore;
    RowFilter all;
    all.positions = filter_.positions;
    is_plain_ = filter_ == all;
  }
  bool go_on() {
    position_ = stretch_->to;
    if (stretch_->is_last || !filter_.positions.has(position_)) {
      ended_ = true;
      return false;
    }
    enter(source_.stretch_at(position_, filter_));
    return !ended_;
  }

  RowSource& source_;
  RowFilter filter_;
  std::shared_ptr<const Stretch> stretch_;
  std::uint64_t position_ = 0;  ///< no row lies before it
  const InstructionRun* run_ = nullptr;
  const InstructionRun* end_ = nullptr;
  std::uint32_t in_run_ = kBefore;
  bool ended_ = true, is_plain_ = true;
  std::string scratch_;
};

/// Rows that are alike, with their number.
class InstructionCountCursor final : public Cursor {
 public:
  InstructionCountCursor(RowSource& source, ColumnSet used) : source_(source), used_(used) {}

  void filter(const Constraints& constraints) override {
    filter_ = row_filter(constraints, kInstructionPosition, kInstructionLevel, kInstructionAddress,
                         -1, kInstructionProcess);
    CountNeeds needs;
    needs.instructions = true;
    const ColumnSet of_context = ColumnSet{1} << kInstructionProcess |
                                 ColumnSet{1} << kInstructionLevel |
                                 ColumnSet{1} << kInstructionSymbol;
    const ColumnSet of_none = ColumnSet{1} << kInstructionPosition | ColumnSet{1}
                                                                         << kInstructionRows;
    needs.context = (used_ & of_context) != 0 || filter_.process || !filter_.levels.is_all();
    needs.code = (used_ & ~of_context & ~of_none) != 0 || has_column(used_, kInstructionSymbol) ||
                 !filter_.addresses.is_all();
    needs.process_names = has_column(used_, kInstructionProcess) || filter_.process.has_value();
    counts_ = source_.count(needs, filter_);
    at_ = kBefore;
    in_code_ = 0;
  }

  bool next() override {
    const auto& all = counts_.instructions;
    for (;;) {
      if (at_ != kBefore && at_ < all.size() && all[at_].code != nullptr &&
          ++in_code_ < all[at_].code->count()) {
      } else {
        ++at_;
        in_code_ = 0;
        if (at_ >= all.size()) return false;
      }
      const InstructionCount& c = all[at_];
      if (c.code == nullptr || filter_.addresses.has(c.code->block()[in_code_].linear.value)) {
        return true;
      }
    }
  }

  Cell cell(int column) override {
    const InstructionCount& count = counts_.instructions[at_];
    // Without contexts there may be none yet, and nobody asks.
    static const std::string kNobody;
    const bool known = count.context < source_.contexts().size();
    const std::string& process = known ? *source_.contexts()[count.context].process : kNobody;
    switch (column) {
      case kInstructionProcess:
        return Cell::lasting(process);
      case kInstructionLevel:
        return known ? level_cell(source_.contexts()[count.context]) : Cell::null();
      case kInstructionRows:
        return Cell::of(count.count);
      default:
        return count.code == nullptr
                   ? Cell::null()
                   : code_cell(column, *count.code, in_code_, source_, &process, scratch_);
    }
  }
  RowKey key() const override { throw InternalError("counted rows have no key"); }

 private:
  static constexpr std::size_t kBefore = ~std::size_t{0};

  RowSource& source_;
  const ColumnSet used_;
  RowFilter filter_;
  Counts counts_;
  std::size_t at_ = kBefore;
  std::uint32_t in_code_ = 0;
  std::string scratch_;
};

class InstructionsTable final : public Table {
 public:
  InstructionsTable()
      : Table("instructions", "Every instruction that completed, in the order of the run",
              kInstructionColumns) {}

  RowNeeds needs(ColumnSet used) const override {
    RowNeeds needs;
    needs.instructions = true;
    needs.process_names =
        has_column(used, kInstructionProcess) || has_column(used, kInstructionSymbol);
    return needs;
  }
  int ordered_by() const override { return kInstructionPosition; }
  double rows(const RowSource& source) const override { return instructions_of(source); }
  std::unique_ptr<Cursor> open(RowSource& source) const override {
    return std::make_unique<InstructionCursor>(source);
  }
  ColumnSet single_columns() const override {
    return ColumnSet{1} << kInstructionPosition | ColumnSet{1} << kInstructionIterations;
  }
  int counts_column() const override { return kInstructionRows; }
  std::unique_ptr<Cursor> open_counts(RowSource& source, ColumnSet used) const override {
    return std::make_unique<InstructionCountCursor>(source, used);
  }
};

const InstructionsTable kInstructionsInstance;

}  // namespace

const Table& kInstructionsTable = kInstructionsInstance;

}  // namespace citcat::sql
