#include "cli/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

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

/// Programs that end a whole group of processes tell some of them twice (timeout(1)): it is no
/// second request.
extern "C" void note_ending(int) { interrupt_seen = 1; }

/// Writing to a terminal that has gone fails (tty_ioctl(4): a hung-up one gives EIO).
extern "C" void note_hangup(int) {
  const int saved = errno;
  interrupt_seen = 1;
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    if (nowhere >= 0 && (isatty(stream) == 1 || errno == EIO)) dup2(nowhere, stream);
  }
  if (nowhere >= 0) close(nowhere);
  errno = saved;
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

void take_endings_for_interrupts() {
  handle(SIGTERM, note_ending, SA_RESTART);
  handle(SIGHUP, note_hangup, SA_RESTART);
}

void acknowledge_interrupt() {
  interrupt_seen = 0;
  handle(SIGINT, note_interrupt, SA_RESTART);
}

bool interrupt_requested() { return interrupt_seen != 0; }

void check_interrupt() {
  if (interrupt_requested()) throw Interrupted();
}

}  // namespace citcat
