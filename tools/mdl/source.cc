// Messages about a place of a text.

#include <algorithm>
#include <cctype>

#include "tools/mdl/parser.h"

namespace citcat::mdl {

namespace {

/// Longest piece of a text that a message repeats.
constexpr std::size_t kShown = 120;

bool is_printed(char c) { return c >= ' ' && c <= '~'; }
bool is_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

std::string_view Source::line(std::size_t number) const {
  std::string_view rest = text_;
  for (; number > 1; --number) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return {};
    rest.remove_prefix(end + 1);
  }
  rest = rest.substr(0, rest.find('\n'));
  if (rest.ends_with('\r')) rest.remove_suffix(1);
  return rest;
}

std::string Source::found_at(Place at) const {
  const std::string_view whole = line(at.line);
  if (at.column > whole.size()) {
    const auto lines = static_cast<std::size_t>(std::count(text_.begin(), text_.end(), '\n'));
    return at.line > lines ? "the end of the text" : "the end of the line";
  }
  const std::string_view rest = whole.substr(at.column - 1);
  std::size_t length = rest.front() == '$' ? 1 : 0;
  while (length < rest.size() && length < kShown && is_of_word(rest[length])) ++length;
  if (length != 0) return std::string(rest.substr(0, length));
  if (is_printed(rest.front())) return std::string(1, rest.front());
  return "a byte that is not text";
}

void Source::refuse(Place at, const std::string& expected, std::string found) const {
  if (found.empty()) found = found_at(at);
  // Only the surroundings of the place are shown of a long line.
  const std::string_view whole = line(at.line);
  const std::size_t column = std::min(at.column - 1, whole.size());
  const std::size_t begin = column > kShown / 2 ? column - kShown / 2 : 0;
  std::string shown(whole.substr(begin, kShown));
  for (char& c : shown) {
    if (!is_printed(c)) c = ' ';
  }
  throw TextError(name_, at, "expected " + expected + ", found " + found,
                  "  " + shown + "\n  " + std::string(column - begin, ' ') + "^\n");
}

}  // namespace citcat::mdl
