#pragma once
// The common part of tables of rows.

#include <cstdint>
#include <string>

#include "sql/tables/table.h"

namespace citcat::sql {

/// The constraints on these columns as a filter; -1: there is no such column.
RowFilter row_filter(const Constraints& constraints, int position, int level, int address,
                     int physical, int process);
/// The first position that the filter leaves; false where it leaves none.
bool begin_of_positions(const RowFilter& filter, std::uint64_t& begin);

/// "schedule+0x1c", of code or data of a process; NULL where it has no name. `scratch` keeps it.
Cell symbol_cell(const RowSource& source, LinearAddr at, const std::string* process,
                 std::string& scratch);
/// NULL where the level is not known.
Cell level_cell(const ContextTable::Entry& context);
/// Instructions of the run, or a guess.
double instructions_of(const RowSource& source);

}  // namespace citcat::sql
