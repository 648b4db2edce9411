#pragma once
// The rows of a table for all processors of a machine, one processor after the other.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "sql/rows/row_source.h"
#include "sql/tables/table.h"

namespace citcat::sql {

class ProcessorsCursor final : public Cursor {
 public:
  /// Table and sources must outlive the cursor. `counts`: rows that are alike come as one.
  ProcessorsCursor(const Table& table, const std::vector<RowSource*>& sources, bool counts,
                   ColumnSet used);

  void filter(const Constraints& constraints) override;
  bool next() override;
  Cell cell(int column) override;
  RowKey key() const override { return cursors_[at_]->key(); }
  /// Which of the sources the current row is of.
  std::size_t source() const { return at_; }

 private:
  bool begin_next();
  bool has(std::size_t source) const;

  const Table& table_;
  const std::vector<RowSource*>& sources_;
  Constraints constraints_;  ///< those that are not of the processor
  IntegerRange processors_;
  /// Texts of constraints, which are valid only while filter() runs.
  std::vector<std::string> texts_;
  std::vector<std::unique_ptr<Cursor>> cursors_;  ///< of each source
  std::size_t at_ = 0;                            ///< of them
  bool begun_ = false;                            ///< the rows of that one have
};

}  // namespace citcat::sql
