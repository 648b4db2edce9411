#pragma once
// Texts from elsewhere that stay in their line, and are as they are otherwise.

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
