#pragma once
// The rows of text tables as different programs write them: their separators, quotes, comments and
// values.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace citcat {

/// Takes the next word off the front of `line`; empty when there is none.
std::string_view take_word(std::string_view& line);
/// Takes the next field off the front of `line`, blanks at its ends and quotes removed; what is
/// between quotes may hold separators (RFC 4180, 2.6). `last`: no separator follows.
std::string_view take_field(std::string_view& line, char separator, bool& last);
/// A row of a table drawn with '|' without the ones at its ends; any other row as it is.
std::string_view without_edges(std::string_view line, char separator);
/// The fields of a row; a blank as the separator stands for any number of them.
std::vector<std::string_view> split_row(std::string_view line, char separator);

/// Empty, or begins with ';' or '#', but not with the name '#' of a column. `marks_numbers`: a '#'
/// marks hexadecimal numbers as well (marks_numbers()).
bool is_comment(std::string_view line, bool marks_numbers);
/// Whether rows of a table begin with words like "#18", by the last lines of its beginning.
bool marks_numbers(std::string_view head);
/// The rule below the names of a printed table.
bool is_rule(std::string_view line);
std::string lower_case(std::string_view text);
/// A level that is not known, as simulators and some analysers write it.
bool is_unknown_level(std::string_view field);
/// A level in words, as tables of flags have it ("High", "L", "true"); nothing for anything else.
std::optional<bool> level_in_words(std::string_view field);
/// A number of whatever kind: hexadecimal, or a real one with either decimal sign.
bool is_table_number(std::string_view field);

/// The separator of the table that `head`, the beginning of a file, holds. A semicolon or a tab
/// that is in every line goes before a comma, which may be the decimal sign. A blank for tables
/// that are printed in columns.
char separator_of(std::string_view head);

/// A line of a head and its number in the file, from 1.
struct NumberedLine {
  std::string_view text;
  std::uint64_t number = 0;
};
/// So many lines show what a table is like; more only take time.
inline constexpr std::size_t kTypicalLines = 256;
/// The whole lines of `head`, at most `most`, without their ends and without comments.
std::vector<NumberedLine> lines_of(std::string_view head, std::size_t most = kTypicalLines);

}  // namespace citcat
