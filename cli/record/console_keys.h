#pragma once
// Filters the keys meant for this program out of those that somebody types for a machine, as QEMU's
// own console does (QEMU's documentation, "Keys in the character backend multiplexer").

#include <optional>

namespace citcat {

class ConsoleKeys {
 public:
  /// Takes a typed byte. Returns the byte that the machine gets: none for Ctrl-A, because the next
  /// key says what it means.
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
