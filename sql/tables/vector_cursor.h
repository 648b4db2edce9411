#pragma once
// A cursor through rows that are in memory, in the order of their positions.

#include <algorithm>
#include <memory>
#include <vector>

#include "sql/tables/row_filters.h"
#include "sql/tables/table.h"

namespace citcat::sql {

/// `Form` says what a row is: its type Row; rows(const WholeRun&), the vector of all of them;
/// position(const Row&); is_row(const Row&); and cell(int column, const Row&, const RowSource&,
/// const WholeRun&, std::string& scratch). The first column is the position.
template <class Form>
class VectorCursor final : public Cursor {
 public:
  explicit VectorCursor(RowSource& source) : source_(source) {}

  void filter(const Constraints& constraints) override {
    run_ = source_.whole();
    const auto& all = Form::rows(*run_);
    const IntegerRange range = integers_of(constraints, kPositionColumn);
    const auto before = [](std::int64_t limit) {
      return [limit](const typename Form::Row& row) {
        return static_cast<std::int64_t>(Form::position(row)) < limit;
      };
    };
    at_ = all.begin();
    end_ = all.end();
    if (range.empty()) {
      end_ = at_;
    } else if (!range.is_all()) {
      at_ = std::partition_point(all.begin(), all.end(), before(range.first));
      if (range.last != IntegerRange{}.last) {
        end_ = std::partition_point(at_, all.end(), before(range.last + 1));
      }
    }
    begun_ = false;
  }

  bool next() override {
    if (begun_) ++at_;
    begun_ = true;
    while (at_ != end_ && !Form::is_row(*at_)) ++at_;
    return at_ != end_;
  }
  Cell cell(int column) override { return Form::cell(column, *at_, source_, *run_, scratch_); }
  RowKey key() const override {
    return {static_cast<std::uint64_t>(at_ - Form::rows(*run_).begin())};
  }

  static constexpr int kPositionColumn = 0;

 private:
  RowSource& source_;
  std::shared_ptr<const WholeRun> run_;
  typename std::vector<typename Form::Row>::const_iterator at_, end_;
  bool begun_ = false;
  std::string scratch_;
};

/// A table of such rows. `needed` is what they need.
template <class Form>
class VectorTable final : public Table {
 public:
  VectorTable(const char* name, const char* meaning, std::span<const Column> columns,
              bool RowNeeds::*needed)
      : Table(name, meaning, columns), needed_(needed) {}
  RowNeeds needs(ColumnSet) const override {
    RowNeeds needs;
    needs.*needed_ = true;
    return needs;
  }
  int ordered_by() const override { return VectorCursor<Form>::kPositionColumn; }
  double rows(const RowSource& source) const override {
    // Some thousand instructions run from one event to the next.
    return instructions_of(source) / 1e3 + 1;
  }
  std::unique_ptr<Cursor> open(RowSource& source) const override {
    return std::make_unique<VectorCursor<Form>>(source);
  }

 private:
  bool RowNeeds::*needed_;
};

}  // namespace citcat::sql
