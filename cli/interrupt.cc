#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "formats/io/temporary.h"

namespace citcat {
namespace {

volatile sig_atomic_t interrupt_seen = 0;

/// The process whose outputs they are: a forked worker must not remove its parent's.
pid_t owner = 0;

void handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = flags;
  sigaction(signal, &action, nullptr);
}

extern "C" void end_at_once(int signal) {
  if (getpid() == owner) remove_unfinished_files();
  handle(signal, SIG_DFL, 0);
  raise(signal);
}

extern "C" void note_interrupt(int signal) {
  interrupt_seen = 1;
  handle(signal, end_at_once, 0);
}

}  // namespace

void install_interrupt_handler() {
  owner = getpid();
  // Restart: reads and writes under way finish.
  handle(SIGINT, note_interrupt, SA_RESTART);
  handle(SIGTERM, end_at_once, 0);
  handle(SIGHUP, end_at_once, 0);
  // A file that may not grow further is an error of the write, told like any other.
  handle(SIGXFSZ, SIG_IGN, 0);
}

bool interrupt_requested() { return interrupt_seen != 0; }

void check_interrupt() {
  if (interrupt_requested()) throw Interrupted();
}

}  // namespace citcat
