#include "cli/interrupt.h"

#include <csignal>

namespace citcat {
namespace {

volatile std::sig_atomic_t interrupt_seen = 0;

extern "C" void note_interrupt(int) { interrupt_seen = 1; }

}  // namespace

void install_interrupt_handler() {
  struct sigaction action = {};
  action.sa_handler = note_interrupt;
  sigemptyset(&action.sa_mask);
  // Reset: the second signal finds the default action. Restart: reads and writes under way finish.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, nullptr);
}

void check_interrupt() {
  if (interrupt_seen) throw Interrupted();
}

}  // namespace citcat
