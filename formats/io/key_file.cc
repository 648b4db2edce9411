#include "formats/io/key_file.h"

#include <sstream>

#include "formats/io/error.h"

namespace citcat {
namespace {

std::string trimmed_copy(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

}  // namespace

const std::string& KeyFile::value(const Group& group, const std::string& key) {
  static const std::string kNone;
  const auto it = group.values.find(key);
  return it == group.values.end() ? kNone : it->second;
}

KeyFile parse_key_file(const std::string& text, const std::string& name) {
  KeyFile file;
  std::istringstream lines(text);
  std::string line;
  for (std::uint64_t number = 1; std::getline(lines, line); ++number) {
    line = trimmed_copy(line);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[' && line.back() == ']') {
      file.groups.push_back({line.substr(1, line.size() - 2), {}});
      continue;
    }
    const auto equals = line.find('=');
    if (equals == std::string::npos || file.groups.empty())
      throw FormatError(name, number, "expected '[group]' or 'key=value' on this line");
    file.groups.back().values[trimmed_copy(line.substr(0, equals))] =
        trimmed_copy(line.substr(equals + 1));
  }
  return file;
}

unsigned long key_number(const KeyFile::Group& group, const std::string& key, unsigned long max,
                         const std::string& name) {
  const std::string& text = KeyFile::value(group, key);
  unsigned long number = 0;
  bool valid = !text.empty() && text.size() <= 18;
  for (const char c : text) {
    valid = valid && c >= '0' && c <= '9';
    if (valid) number = number * 10 + static_cast<unsigned long>(c - '0');
  }
  if (!valid || number > max)
    throw FormatError(name, 0,
                      "expected '" + key + "' to be a number up to " + std::to_string(max) +
                          ", found '" + text + "'");
  return number;
}

}  // namespace citcat
