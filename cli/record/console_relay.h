#pragma once
// The standard input on its way to a machine's serial port. When QEMU keeps a log, it takes all
// waiting input at once, and the port loses what does not fit its 16 bytes; so the input is passed
// on in small pieces.

#include <termios.h>

#include <atomic>
#include <optional>
#include <thread>

#include "cli/record/recorded_emulator.h"

namespace citcat {

class ConsoleRelay {
 public:
  /// From here on a terminal gives its keys one by one, Ctrl-C among them. Throws IoError.
  ConsoleRelay();
  /// The terminal is as it was.
  ~ConsoleRelay();
  ConsoleRelay(const ConsoleRelay&) = delete;
  ConsoleRelay& operator=(const ConsoleRelay&) = delete;

  /// The emulator's standard input.
  int input() const { return pipe_.read.value(); }
  /// The emulator has its input; what is typed goes there.
  void begin();
  /// Ctrl-A X was typed on the terminal.
  bool asks_end() const { return asks_end_; }

 private:
  void relay();
  bool send(char byte);

  Pipe pipe_, end_;
  std::optional<termios> before_;  ///< of the terminal
  std::atomic<bool> asks_end_ = false;
  unsigned sent_ = 0;
  std::thread thread_;
};

}  // namespace citcat
