#include "formats/captures/table_rows.h"

#include <algorithm>

#include "formats/captures/table_head.h"
#include "formats/captures/table_text.h"
#include "formats/captures/table_times.h"
#include "formats/io/line_reader.h"

namespace citcat {
namespace {

/// How many of the last columns are those of Rigol's step, of which other rows have no cells.
std::size_t step_columns(const std::vector<std::string_view>& names) {
  const auto last = std::find_if_not(names.rbegin(), names.rend(), names_a_step);
  return static_cast<std::size_t>(last - names.rbegin());
}

}  // namespace

std::vector<std::string_view> fields_of(std::string_view row, char separator, std::size_t columns) {
  std::vector<std::string_view> fields = split_row(row, separator);
  if (columns != 0 && fields.size() == columns + 1 && fields.back().empty()) fields.pop_back();
  return fields;
}

std::vector<std::string_view> first_fields(std::string_view row, char separator) {
  std::vector<std::string_view> fields = split_row(row, separator);
  if (fields.size() > 1 && fields.back().empty()) fields.pop_back();
  return fields;
}

bool is_row_of_units(const std::vector<std::string_view>& fields) {
  return std::all_of(fields.begin(), fields.end(), is_unit_cell) &&
         !std::all_of(fields.begin(), fields.end(),
                      [](std::string_view field) { return field.empty(); });
}

bool are_numbered(std::string_view head, char separator, std::uint64_t first_line) {
  constexpr std::size_t kRows = 3;
  std::vector<std::uint64_t> numbers;
  for (const NumberedLine& line : lines_of(head)) {
    if (line.number < first_line || numbers.size() == kRows) continue;
    std::uint64_t number = 0;
    if (!parse_decimal(first_fields(line.text, separator)[0], number)) return false;
    numbers.push_back(number);
  }
  return numbers.size() == kRows && numbers[1] == numbers[0] + 1 && numbers[2] == numbers[1] + 1;
}

Misfit misfit_of(std::size_t cells, const std::vector<std::string_view>& names,
                 std::string_view head, char separator, std::uint64_t line) {
  if (cells == names.size()) return Misfit::none;
  const std::size_t steps = step_columns(names);
  if (steps != 0 && cells + steps == names.size()) return Misfit::without_steps;
  // R writes no name for the column that numbers the rows.
  if (cells == names.size() + 1 && are_numbered(head, separator, line))
    return Misfit::with_row_numbers;
  return Misfit::other;
}

std::optional<char> declared_separator(std::string_view line) {
  constexpr std::string_view kWord = "sep=";
  if (line.size() != kWord.size() + 1 || lower_case(line.substr(0, kWord.size())) != kWord)
    return std::nullopt;
  return line.back();
}

char line_end_of(std::string_view head) {
  const bool old = head.find('\n') == std::string_view::npos;
  return old && head.find('\r') != std::string_view::npos ? '\r' : '\n';
}

}  // namespace citcat
