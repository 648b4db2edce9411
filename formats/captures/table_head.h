#pragma once
// The lines that oscilloscopes write above the table of their digital channels, with the table's
// own separator: settings, a line each (Tektronix, Siglent), or the step of the rows (Rigol).

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace citcat {

/// The number of the line with the names of the columns, where settings are above it; 0 where
/// none do. `head` is the beginning of a file.
std::uint64_t line_of_names(std::string_view head, char separator);

/// A number, a time, a level in words, or one that is not known.
bool is_table_value(std::string_view field);
/// The fields are names of columns. Names that are also numbers (A, D0, BE) make a line of names
/// when all begin with a letter and no two are equal.
bool looks_like_names(const std::vector<std::string_view>& fields);

/// Seconds from one row to the next, of a setting "Sample Interval,2e-08".
std::optional<double> sample_interval(const std::vector<std::string_view>& fields);
/// The unit of the times, of a setting "Horizontal Units,s"; 0: it is none.
double horizontal_unit(const std::vector<std::string_view>& fields);

/// Below "X,D0,D1,Start,Increment" is "Sequence,,,-1e-07,2e-08" (Rigol).
bool is_row_of_steps(const std::vector<std::string_view>& fields);
/// Names of columns for which only that row has values.
bool names_a_step(std::string_view column);

}  // namespace citcat
