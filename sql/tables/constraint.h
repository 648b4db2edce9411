#pragma once
// The conditions of a query on the rows of a table, as far as SQLite passes them to the table.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sql/rows/row_filter.h"
#include "sql/tables/cell.h"

namespace citcat::sql {

struct Constraint {
  enum class Is : std::uint8_t { equal, greater, at_least, less, at_most } is = Is::equal;
  int column = 0;
  Cell value;  ///< valid while the constraint is looked at
};

using Constraints = std::vector<Constraint>;

/// The integers that a column may have: of what SQL compares with an integer, in its order: no
/// value equals NULL, numbers come before texts.
IntegerRange integers_of(const Constraints& constraints, int column);
/// The text that a column is to equal; nullopt where it may have several. A column of text equals
/// no number.
std::optional<std::string> text_of(const Constraints& constraints, int column);

}  // namespace citcat::sql
