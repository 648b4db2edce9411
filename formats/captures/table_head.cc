#include "formats/captures/table_head.h"

#include <algorithm>

#include "formats/captures/table_cells.h"
#include "formats/captures/table_text.h"
#include "formats/captures/table_times.h"

namespace citcat {

bool is_table_value(std::string_view field) {
  return is_table_number(field) || is_unknown_level(field) || level_in_words(field) ||
         parse_cell(field, 16) || parse_cell(field, 10) || parse_time(field, 1).has_value();
}

bool looks_like_names(const std::vector<std::string_view>& fields) {
  if (!std::all_of(fields.begin(), fields.end(), is_table_value)) return true;
  std::vector<std::string_view> sorted = fields;
  std::sort(sorted.begin(), sorted.end());
  const bool distinct = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  return distinct && std::all_of(fields.begin(), fields.end(), [](std::string_view field) {
           return (field[0] >= 'A' && field[0] <= 'F') || (field[0] >= 'a' && field[0] <= 'f') ||
                  level_in_words(field);
         });
}

namespace {

std::vector<std::string_view> cells_of(std::string_view line, char separator) {
  std::vector<std::string_view> cells = split_row(line, separator);
  if (cells.size() > 1 && cells.back().empty()) cells.pop_back();
  return cells;
}

/// The row has numbers and levels alone; some may be missing.
bool is_row_of_values(const std::vector<std::string_view>& cells) {
  const auto is_empty = [](std::string_view cell) { return cell.empty(); };
  return !std::all_of(cells.begin(), cells.end(), is_empty) &&
         std::all_of(cells.begin(), cells.end(), [](std::string_view cell) {
           return cell.empty() || is_table_number(cell) || is_unknown_level(cell) ||
                  level_in_words(cell);
         });
}

bool are_units(const std::vector<std::string_view>& cells) {
  return std::all_of(cells.begin(), cells.end(), is_unit_cell);
}

}  // namespace

std::uint64_t line_of_names(std::string_view head, char separator) {
  if (separator == ' ') return 0;
  const std::vector<NumberedLine> lines = lines_of(head);
  const auto cells = [&](std::size_t i) { return cells_of(lines[i].text, separator); };
  std::size_t first = lines.size();
  while (first != 0 && is_row_of_values(cells(first - 1))) --first;
  if (lines.size() - first < 2 || first == 0) return 0;
  const auto fits = [&](std::size_t line) {
    return split_row(lines[line].text, separator).size() ==
           split_row(lines[first].text, separator).size();
  };
  const auto other_columns_above = [&](std::size_t line) {
    while (line != 0)
      if (fits(--line)) return false;
    return true;
  };
  // Names may be numbers, too (AD0): where nothing above has as many columns.
  const auto row = cells(first);
  const bool is_full = std::find(row.begin(), row.end(), std::string_view()) == row.end();
  std::size_t names = first;
  if (!is_full || !looks_like_names(row) || !other_columns_above(first)) {
    --names;
    if (names != 0 && (are_units(cells(names)) || is_row_of_steps(cells(names)))) --names;
  }
  if (names == 0 || !fits(names)) return 0;
  // One line, or two, are names and units.
  const bool doubtful = first < 3 || is_table_number(cells(names)[0]);
  if (doubtful && !other_columns_above(names)) return 0;
  // A row of the table above it: the line that is no row is damaged.
  for (std::size_t i = 0; i < names; ++i)
    if (is_row_of_values(cells(i))) return 0;
  return lines[names].number;
}

std::optional<double> sample_interval(const std::vector<std::string_view>& fields) {
  if (fields.size() < 2 || lower_case(fields[0]) != "sample interval") return std::nullopt;
  // Siglent: "Digital:2e-08".
  const std::string_view value = fields[1].substr(fields[1].find(':') + 1);
  const auto seconds = parse_time(value, 1);
  return seconds && *seconds > 0 ? seconds : std::nullopt;
}

double horizontal_unit(const std::vector<std::string_view>& fields) {
  const bool is = fields.size() > 1 && lower_case(fields[0]) == "horizontal units";
  return is ? unit_of_time(fields[1]) : 0;
}

bool is_row_of_steps(const std::vector<std::string_view>& fields) {
  return !fields.empty() && lower_case(fields[0]) == "sequence";
}

bool names_a_step(std::string_view column) {
  const std::string name = lower_case(column);
  return name == "start" || name == "increment";
}

}  // namespace citcat
