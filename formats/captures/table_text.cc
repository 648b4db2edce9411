#include "formats/captures/table_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "formats/io/line_reader.h"

namespace citcat {
namespace {

constexpr std::string_view kBlanks = " \t";

std::size_t count_of(std::string_view line, char separator) {
  return split_row(line, separator).size() - 1;
}

bool is_real(std::string_view field) {
  std::string text(field);
  if (const auto comma = text.find(','); comma != std::string::npos) text[comma] = '.';
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size() &&
         std::isfinite(value);
}

}  // namespace

std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

std::string_view take_field(std::string_view& line, char separator, bool& last) {
  std::size_t from = 0;
  const std::size_t begin = line.find_first_not_of(separator == '\t' ? " " : kBlanks);
  if (begin != std::string_view::npos && line[begin] == '"') {
    const std::size_t quote = line.find('"', begin + 1);
    if (quote != std::string_view::npos) from = quote;
  }
  const std::size_t end = line.find(separator, from);
  std::string_view field = trimmed(line.substr(0, end));
  if (field.size() >= 2 && field.front() == '"' && field.back() == '"')
    field = trimmed(field.substr(1, field.size() - 2));
  last = end == std::string_view::npos;
  line.remove_prefix(last ? line.size() : end + 1);
  return field;
}

std::string_view without_edges(std::string_view line, char separator) {
  if (separator != '|') return line;
  line = trimmed(line);
  if (!line.empty() && line.front() == '|') line.remove_prefix(1);
  if (!line.empty() && line.back() == '|') line.remove_suffix(1);
  return line;
}

std::vector<std::string_view> split_row(std::string_view line, char separator) {
  std::vector<std::string_view> fields;
  if (separator == ' ') {
    for (std::string_view word = take_word(line); !word.empty(); word = take_word(line))
      fields.push_back(word);
    return fields;
  }
  line = without_edges(line, separator);
  for (bool last = false; !last;) fields.push_back(take_field(line, separator, last));
  return fields;
}

/// "#18,": a word and a separator.
static bool begins_with_marked_number(std::string_view line) {
  if (line.empty() || line[0] != '#') return false;
  const std::size_t end = line.find_first_not_of("0123456789abcdefABCDEF", 1);
  return end != std::string_view::npos && end > 1 &&
         std::string_view(",;\t|").find(line[end]) != std::string_view::npos;
}

bool marks_numbers(std::string_view head) {
  // One may be a comment.
  constexpr int kRows = 2;
  for (int row = 0; row < kRows; ++row) {
    const std::size_t end = head.rfind('\n');
    if (end == std::string_view::npos) return false;
    head = head.substr(0, end);
    // rfind() finds nothing before the first line: npos + 1 is its beginning.
    if (!begins_with_marked_number(head.substr(head.rfind('\n') + 1))) return false;
  }
  return true;
}

bool is_comment(std::string_view line, bool marks_numbers) {
  if (marks_numbers && begins_with_marked_number(line)) return false;
  // "#,CLK,S0" and "#;CLK;S0" are names of columns, of which the first numbers the rows.
  const bool counts = line.size() > 1 && line[0] == '#' && (line[1] == ',' || line[1] == ';');
  // DOS programs may end a text with Ctrl-Z.
  return trimmed(line).empty() || line == "\x1a" || line[0] == ';' || (line[0] == '#' && !counts);
}

bool is_rule(std::string_view line) {
  return line.find_first_not_of("-=+:| \t") == std::string_view::npos;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

bool is_unknown_level(std::string_view field) {
  return field.size() == 1 && std::string_view("xXzZ?").find(field[0]) != std::string_view::npos;
}

std::optional<bool> level_in_words(std::string_view field) {
  if (field.size() > 5) return std::nullopt;
  const std::string word = lower_case(field);
  if (word == "h" || word == "high" || word == "true" || word == "on" || word == "yes") return true;
  if (word == "l" || word == "low" || word == "false" || word == "off" || word == "no")
    return false;
  return std::nullopt;
}

bool is_table_number(std::string_view field) {
  std::uint64_t ignored = 0;
  return parse_hexadecimal(field, ignored) || is_real(field);
}

/// Columns that stand apart by blanks from the names of the columns on. A comma in a row belongs to
/// a field then, as in a disassembled instruction.
static bool is_printed(const std::vector<NumberedLine>& lines) {
  return lines.size() > 1 && lines[0].text.find_first_of(",;\t|") == std::string_view::npos &&
         std::all_of(lines.begin(), lines.end(), [](const NumberedLine& line) {
           return trimmed(line.text).find("  ") != std::string_view::npos;
         });
}

char separator_of(std::string_view head) {
  const std::vector<NumberedLine> lines = lines_of(head);
  if (is_printed(lines)) return ' ';
  // Titles and names come first: the second half is rows.
  const auto rows = std::span(lines).subspan(lines.size() / 2);
  for (const char c : {'\t', ';', '|', ','}) {
    if (rows.empty()) break;
    const std::size_t separators = count_of(rows[0].text, c);
    if (separators != 0 && std::all_of(rows.begin(), rows.end(), [&](const NumberedLine& row) {
          return count_of(row.text, c) == separators;
        }))
      return c;
  }
  // Damaged, or a row alone: by its first line.
  const std::string_view first = lines.empty() ? head.substr(0, head.find('\n')) : lines[0].text;
  for (const char c : {',', '\t', ';', '|'})
    if (first.find(c) != std::string_view::npos) return c;
  return trimmed(first).find(' ') != std::string_view::npos ? ' ' : ',';
}

std::vector<NumberedLine> lines_of(std::string_view head, std::size_t most) {
  std::vector<NumberedLine> lines;
  const bool marked = marks_numbers(head);
  for (std::uint64_t number = 1; lines.size() < most; ++number) {
    const auto end = head.find('\n');
    if (end == std::string_view::npos) break;
    std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const bool rule = line.find('|') != std::string_view::npos && is_rule(line);
    if (!is_comment(line, marked) && !rule) lines.push_back({line, number});
  }
  return lines;
}

}  // namespace citcat
