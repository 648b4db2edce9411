#include "sql/database/processors_cursor.h"

#include <utility>

namespace citcat::sql {

ProcessorsCursor::ProcessorsCursor(const Table& table, const std::vector<RowSource*>& sources,
                                   bool counts, ColumnSet used)
    : table_(table), sources_(sources) {
  for (RowSource* const source : sources_) {
    cursors_.push_back(counts ? table_.open_counts(*source, used) : table_.open(*source));
    if (!table_.of_run()) break;  // the same for all
  }
}

void ProcessorsCursor::filter(const Constraints& constraints) {
  const int processor = table_.processor_column();
  processors_ = processor < 0 ? IntegerRange{} : integers_of(constraints, processor);
  constraints_.clear();
  texts_.clear();
  texts_.reserve(constraints.size());
  for (const Constraint& c : constraints) {
    if (c.column == processor) continue;
    constraints_.push_back(c);
    if (!c.value.is_text()) continue;
    texts_.emplace_back(c.value.text);
    constraints_.back().value.text = texts_.back();
  }
  at_ = 0;
  begun_ = false;
}

bool ProcessorsCursor::has(std::size_t source) const {
  return processors_.has(std::uint64_t{sources_[source]->processor()});
}

/// To before the first row of the next processor; false where there is none.
bool ProcessorsCursor::begin_next() {
  while (at_ < cursors_.size() && !has(at_)) ++at_;
  if (at_ == cursors_.size()) return false;
  cursors_[at_]->filter(constraints_);
  begun_ = true;
  return true;
}

bool ProcessorsCursor::next() {
  for (;;) {
    if (!begun_ && !begin_next()) return false;
    if (cursors_[at_]->next()) return true;
    begun_ = false;
    ++at_;
  }
}

Cell ProcessorsCursor::cell(int column) {
  if (column == table_.processor_column()) {
    return Cell::of(std::uint64_t{sources_[at_]->processor()});
  }
  return cursors_[at_]->cell(column);
}

}  // namespace citcat::sql
