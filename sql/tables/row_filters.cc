#include "sql/tables/row_filters.h"

#include <algorithm>

#include "tools/host/tool.h"

namespace citcat::sql {

RowFilter row_filter(const Constraints& constraints, int position, int level, int address,
                     int physical, int process) {
  RowFilter filter;
  if (position >= 0) filter.positions = integers_of(constraints, position);
  if (level >= 0) filter.levels = integers_of(constraints, level);
  if (address >= 0) filter.addresses = integers_of(constraints, address);
  if (physical >= 0) filter.physical = integers_of(constraints, physical);
  if (process >= 0) filter.process = text_of(constraints, process);
  return filter;
}

bool begin_of_positions(const RowFilter& filter, std::uint64_t& begin) {
  begin = static_cast<std::uint64_t>(std::max<std::int64_t>(filter.positions.first, 0));
  return !filter.positions.empty() && filter.positions.last >= 0 && !filter.levels.empty() &&
         !filter.addresses.empty() && !filter.physical.empty();
}

Cell symbol_cell(const RowSource& source, LinearAddr at, const std::string* process,
                 std::string& scratch) {
  const auto place = source.symbols().find(at, process != nullptr ? *process : std::string());
  if (!place) return Cell::null();
  scratch = place_name(*place);
  return Cell::passing(scratch);
}

Cell level_cell(const ContextTable::Entry& context) {
  return context.knows_level() ? Cell::of(context.level) : Cell::null();
}

double instructions_of(const RowSource& source) {
  constexpr double kGuess = 1e6;
  const std::uint64_t known = source.instructions();
  return known != 0 ? static_cast<double>(known) : kGuess;
}

}  // namespace citcat::sql
