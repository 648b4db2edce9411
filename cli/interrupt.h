#pragma once

#include <exception>

namespace citcat {

/// Thrown by check_interrupt() after Ctrl-C, so that unfinished outputs are removed on the way out.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

/// From here on Ctrl-C asks the program to stop at its next check. A second Ctrl-C, SIGTERM and
/// SIGHUP end it at once, without unfinished outputs.
void install_interrupt_handler();

/// Ctrl-C was pressed: for work that has findings to tell before it ends.
bool interrupt_requested();

/// Throws Interrupted when Ctrl-C was pressed. Cheap: call it in every long loop, or let
/// Progress::update() do so.
void check_interrupt();

}  // namespace citcat
