#include "debugger/server/sessions.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "formats/io/error.h"

namespace citcat {

namespace {

/// By default an ended process interrupts nothing.
extern "C" void note_ended_session(int) {}

}  // namespace

Sessions::Sessions(std::size_t most) : most_(most) {
  struct sigaction action = {};
  action.sa_handler = note_ended_session;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_NOCLDSTOP;
  sigaction(SIGCHLD, &action, &usual_child_);
  sigset_t mask;
  sigemptyset(&mask);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&mask, signal);
  sigprocmask(SIG_BLOCK, &mask, &usual_mask_);
}

Sessions::~Sessions() {
  for (const pid_t child : running_) kill(child, SIGTERM);
  for (const pid_t child : running_) {
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  sigaction(SIGCHLD, &usual_child_, nullptr);
  sigprocmask(SIG_SETMASK, &usual_mask_, nullptr);
}

bool Sessions::wait(int descriptor) {
  pollfd waiting{descriptor, POLLIN, 0};
  const int ready = ppoll(&waiting, 1, nullptr, &usual_mask_);
  const int error = errno;
  collect();
  if (ready < 0 && error != EINTR) {
    throw IoError(std::string("cannot wait for a connection: ") + std::strerror(error));
  }
  return ready > 0;
}

void Sessions::collect() {
  std::erase_if(running_, [](pid_t child) { return waitpid(child, nullptr, WNOHANG) == child; });
}

void Sessions::begin(const std::function<int()>& session) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw IoError(std::string("cannot start a session: ") + std::strerror(errno));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(0);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_SETMASK, &usual_mask_, nullptr);
    _exit(session());
  }
  running_.insert(child);
}

}  // namespace citcat
