#pragma once

#include <exception>

namespace citcat {

/// Thrown by check_interrupt() after Ctrl-C, so that unfinished outputs are removed on the way out.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

/// From here on Ctrl-C asks the program to stop at its next check. A second Ctrl-C ends it at once,
/// without unfinished outputs, and so do SIGTERM and SIGHUP.
void install_interrupt_handler();

/// From here on SIGTERM and SIGHUP, however often, are taken for one Ctrl-C: for what is to be
/// completed. When the terminal has gone, what would still be said there goes nowhere.
void take_endings_for_interrupts();

/// The command did what Ctrl-C asked for; it counts no longer, and the next one does.
void acknowledge_interrupt();

/// Ctrl-C was pressed: for work that has findings to tell before it ends.
bool interrupt_requested();

/// Throws Interrupted when Ctrl-C was pressed. Cheap: call it in every long loop, or let
/// Progress::update() do so.
void check_interrupt();

}  // namespace citcat
