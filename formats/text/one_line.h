#pragma once
// Keeps a text from another source on one line, and otherwise leaves it unchanged.

#include <string>
#include <string_view>

namespace citcat {

/// `text` with line ends as \x0a and \x0d.
inline std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    if (c == '\n') {
      line += "\\x0a";
    } else if (c == '\r') {
      line += "\\x0d";
    } else {
      line += c;
    }
  }
  return line;
}

}  // namespace citcat
