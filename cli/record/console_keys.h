#pragma once
// What somebody types for a machine: the keys that mean this program are taken out, as QEMU's own
// console does with them (QEMU's documentation, "Keys in the character backend multiplexer").

#include <optional>

namespace citcat {

class ConsoleKeys {
 public:
  /// A typed byte. Returns what the machine gets of it: nothing for Ctrl-A, of which the next key
  /// says what is meant.
  std::optional<char> take(char key) {
    constexpr char kControlA = 1;
    if (!escaped_ && key == kControlA) {
      escaped_ = true;
      return std::nullopt;
    }
    if (!escaped_) return key;
    escaped_ = false;
    if (key == 'x' || key == 'X') asks_end_ = true;
    if (key == kControlA || key == 'a') return kControlA;
    return std::nullopt;
  }
  /// Ctrl-A X was typed.
  bool asks_end() const { return asks_end_; }

 private:
  bool escaped_ = false, asks_end_ = false;
};

}  // namespace citcat
