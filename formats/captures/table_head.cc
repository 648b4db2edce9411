#include "formats/captures/table_head.h"

#include <algorithm>

#include "formats/captures/table_text.h"
#include "formats/captures/table_times.h"

namespace citcat {
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
           return cell.empty() || is_table_number(cell) || is_unknown_level(cell);
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
  // One line, or two, are names and units.
  if (lines.size() - first < 2 || first < 3) return 0;
  std::size_t names = first - 1;
  if (are_units(cells(names)) || is_row_of_steps(cells(names))) --names;
  const bool fits = split_row(lines[names].text, separator).size() ==
                    split_row(lines[first].text, separator).size();
  if (!fits || names == 0 || is_table_number(cells(names)[0])) return 0;
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
