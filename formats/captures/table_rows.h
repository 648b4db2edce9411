#pragma once
// How the rows of a text table fit its names: cells, numbers of rows, and what some programs write
// between the names and the first row.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace citcat {

/// The fields of a row; without the empty one after a last separator, where `columns` is not 0 and
/// says that it is one too many.
std::vector<std::string_view> fields_of(std::string_view row, char separator, std::size_t columns);
/// The names of columns, or the first row of a table without names.
std::vector<std::string_view> first_fields(std::string_view row, char separator);
/// "(us),(V)", "s;;": what some programs write below the names (PicoScope, LabVIEW).
bool is_row_of_units(const std::vector<std::string_view>& fields);
/// The rows from this line on begin with numbers that rise by one. `head`: the beginning of a file.
bool are_numbered(std::string_view head, char separator, std::uint64_t first_line);

/// How a row differs from the names of its table.
enum class Misfit : std::uint8_t {
  none,
  without_steps,     ///< Rigol's: it has no cells for the step
  with_row_numbers,  ///< R's: the column that numbers the rows has no name
  other,
};
/// Finds it for a row of so many cells, in line `line` of `head`.
Misfit misfit_of(std::size_t cells, const std::vector<std::string_view>& names,
                 std::string_view head, char separator, std::uint64_t line);

/// "sep=;": tells Excel the separator, and is in the first line.
std::optional<char> declared_separator(std::string_view line);
/// '\r' where a file has no other line ends, else '\n'.
char line_end_of(std::string_view head);

}  // namespace citcat
