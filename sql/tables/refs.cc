// refs: one row for each access to memory, except instruction fetches and page walks.

#include <algorithm>

#include "formats/io/error.h"
#include "sql/tables/row_filters.h"
#include "sql/tables/table.h"

namespace citcat::sql {
namespace {

enum RefColumn : int {
  kRefPosition,
  kRefAddress,
  kRefPhysical,
  kRefSize,
  kRefKind,
  kRefClass,
  kRefIteration,
  kRefValue,
  kRefProcess,
  kRefLevel,
  kRefRows,
};

using enum Column::Type;
using enum Column::Use;

constexpr Column kRefColumns[] = {
    {integer, exact, "position", "instructions completed before the one that accesses it"},
    {Column::Type::address, exact, "address",
     "linear address; NULL for descriptor tables and the like"},
    {Column::Type::address, exact, "physical", "physical address"},
    {integer, none, "size", "bytes, all in one page"},
    {text, none, "kind", "read or write"},
    {text, none, "class",
     "data; system: tables and task segments, by an instruction; delivery: by an interrupt, an "
     "exception, or an instruction that was refused"},
    {integer, none, "iteration", "number of the iteration of a REP string instruction, from 0"},
    {integer, none, "value", "the value, if it has at most 8 bytes; NULL if it is not known"},
    {text, exact, "process", "name of the running process, or its page tables (CR3)"},
    {integer, exact, "level", "privilege level, 0 to 3"},
    {integer, none, "rows", "accesses that the row stands for: 1"},
};

const char* class_text(AccessClass kind) {
  switch (kind) {
    case AccessClass::data:
      return "data";
    case AccessClass::system:
      return "system";
    case AccessClass::delivery:
      return "delivery";
  }
  return "";
}

RowFilter ref_filter(const Constraints& constraints) {
  return row_filter(constraints, kRefPosition, kRefLevel, kRefAddress, kRefPhysical, kRefProcess);
}

class RefCursor final : public Cursor {
 public:
  explicit RefCursor(RowSource& source) : source_(source) { source_.add_reader(); }
  ~RefCursor() override { source_.remove_reader(); }

  void filter(const Constraints& constraints) override {
    filter_ = ref_filter(constraints);
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
      if (++at_ == run_->end) {
        at_ = run_->begin;
        if (++time_ == run_->times) {
          ++run_;
          begin_run();
          continue;
        }
      }
      access_ = &stretch_->rows.accesses[at_];
      const std::uint64_t position = run_->first.instruction + access_->instruction;
      if (position < position_) continue;
      if (!filter_.positions.has(position)) {
        ended_ = true;
        return false;
      }
      if (satisfies()) return true;
    }
  }

  Cell cell(int column) override {
    constexpr std::uint16_t kValueBytes = 8;
    const ContextTable::Entry& context = source_.contexts()[run_->context];
    switch (column) {
      case kRefPosition:
        return Cell::of(run_->first.instruction + access_->instruction);
      case kRefAddress:
        return has_linear() ? Cell::of(linear().value) : Cell::null();
      case kRefPhysical:
        return Cell::of(physical().value);
      case kRefSize:
        return Cell::of(access_->size);
      case kRefKind:
        return Cell::lasting(access_->write ? "write" : "read");
      case kRefClass:
        return Cell::lasting(class_text(access_->kind));
      case kRefIteration:
        return Cell::of(run_->first.iteration + time_);
      case kRefValue:
        return access_->size <= kValueBytes ? Cell::of(access_->value) : Cell::null();
      case kRefProcess:
        return Cell::lasting(*context.process);
      case kRefLevel:
        return level_cell(context);
      case kRefRows:
        return Cell::of(1);
      default:
        return Cell::null();
    }
  }
  RowKey key() const override {
    const std::uint64_t before = access_->instruction == 0 ? run_->before : 0;
    return {run_->first.instruction + access_->instruction,
            before + std::uint64_t{time_} * run_->each + access_->number};
  }

 private:
  bool has_linear() const {
    return access_->linear.value != 0 || access_->kind == AccessClass::data;
  }
  LinearAddr linear() const { return tools::further(access_->linear, time_ * run_->step); }
  PhysAddr physical() const { return access_->physical.plus32(time_ * run_->step); }

  bool satisfies() const {
    return filter_.has(linear(), physical(), has_linear()) &&
           filter_.has(source_.contexts()[run_->context]);
  }
  void begin_run() {
    time_ = 0;
    at_ = run_ != end_ ? run_->begin - 1 : 0;
  }
  void enter(std::shared_ptr<const Stretch> stretch) {
    stretch_ = std::move(stretch);
    ended_ = stretch_ == nullptr;
    if (ended_) return;
    const auto& runs = stretch_->rows.access_runs;
    run_ = runs.data() + (std::partition_point(runs.begin(), runs.end(),
                                               [&](const AccessRun& r) {
                                                 return r.first.instruction + last_instruction(r) <
                                                        position_;
                                               }) -
                          runs.begin());
    end_ = runs.data() + runs.size();
    begin_run();
  }
  std::uint64_t last_instruction(const AccessRun& run) const {
    return stretch_->rows.accesses[run.end - 1].instruction;
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
  const AccessRun* run_ = nullptr;
  const AccessRun* end_ = nullptr;
  const Access* access_ = nullptr;
  std::uint32_t at_ = 0, time_ = 0;
  bool ended_ = true;
};

/// Rows that are alike, with their number.
class RefCountCursor final : public Cursor {
 public:
  RefCountCursor(RowSource& source, ColumnSet used) : source_(source), used_(used) {}

  void filter(const Constraints& constraints) override {
    const RowFilter filter = ref_filter(constraints);
    CountNeeds needs;
    needs.process_names = has_column(used_, kRefProcess) || filter.process.has_value();
    counts_ = source_.count(needs, filter);
    at_ = ~std::size_t{0};
  }
  bool next() override { return ++at_ < counts_.accesses.size(); }
  Cell cell(int column) override {
    const AccessCount& count = counts_.accesses[at_];
    switch (column) {
      case kRefSize:
        return Cell::of(count.size);
      case kRefKind:
        return Cell::lasting(count.write ? "write" : "read");
      case kRefClass:
        return Cell::lasting(class_text(count.kind));
      case kRefProcess:
        return Cell::lasting(*source_.contexts()[count.context].process);
      case kRefLevel:
        return level_cell(source_.contexts()[count.context]);
      case kRefRows:
        return Cell::of(count.count);
      default:
        return Cell::null();
    }
  }
  RowKey key() const override { throw InternalError("counted rows have no key"); }

 private:
  RowSource& source_;
  const ColumnSet used_;
  Counts counts_;
  std::size_t at_ = 0;
};

class RefsTable final : public Table {
 public:
  RefsTable()
      : Table("refs", "Every access to memory, except fetches of instructions and page walks",
              kRefColumns) {}

  RowNeeds needs(ColumnSet used) const override {
    RowNeeds needs;
    needs.accesses = true;
    needs.values = has_column(used, kRefValue);
    needs.process_names = has_column(used, kRefProcess);
    return needs;
  }
  int ordered_by() const override { return kRefPosition; }
  double rows(const RowSource& source) const override { return instructions_of(source); }
  std::unique_ptr<Cursor> open(RowSource& source) const override {
    return std::make_unique<RefCursor>(source);
  }
  ColumnSet single_columns() const override {
    return ColumnSet{1} << kRefPosition | ColumnSet{1} << kRefAddress |
           ColumnSet{1} << kRefPhysical | ColumnSet{1} << kRefIteration | ColumnSet{1} << kRefValue;
  }
  int counts_column() const override { return kRefRows; }
  std::unique_ptr<Cursor> open_counts(RowSource& source, ColumnSet used) const override {
    return std::make_unique<RefCountCursor>(source, used);
  }
};

const RefsTable kRefsInstance;

}  // namespace

const Table& kRefsTable = kRefsInstance;

}  // namespace citcat::sql
