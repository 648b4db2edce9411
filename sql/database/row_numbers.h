#pragma once
// The numbers by which SQLite knows rows (rowid). If SQLite reads a table more than once, for the
// two sides of an OR or for the rows that a RIGHT JOIN leaves over, it recognises by these numbers
// the rows that it has already seen.

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "sql/tables/table.h"

namespace citcat::sql {

class RowNumbers {
 public:
  /// Another statement begins: numbers that were given out count no longer.
  void clear() { others_.clear(); }
  /// The number of a row of a processor, of one table. Throws Error where what it has to keep does
  /// not fit into the memory that the program may take.
  std::int64_t number(std::size_t processor, const RowKey& key);

 private:
  /// Rows whose keys do not fit into a number: they are counted as they come, from -1 downwards.
  std::map<std::pair<std::size_t, RowKey>, std::int64_t> others_;
};

}  // namespace citcat::sql
