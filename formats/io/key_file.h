#pragma once
// The "[group]" / "key=value" text that session files carry their description in (GLib key files).

#include <map>
#include <string>
#include <vector>

namespace citcat {

struct KeyFile {
  struct Group {
    std::string name;
    std::map<std::string, std::string> values;
  };
  std::vector<Group> groups;

  /// The value, or "" when the group has no such key.
  static const std::string& value(const Group& group, const std::string& key);
};

/// Parses such a text; blanks around keys and values are dropped, '#' and ';' begin comments.
/// FormatError with the line number for a line that is neither.
KeyFile parse_key_file(const std::string& text, const std::string& name);

/// A decimal number of at most `max`; FormatError (naming the key) for anything else.
unsigned long key_number(const KeyFile::Group& group, const std::string& key, unsigned long max,
                         const std::string& name);

}  // namespace citcat
