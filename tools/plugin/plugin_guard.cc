#include "tools/plugin/plugin_guard.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>

#include "tools/plugin/confinement.h"

namespace citcat::tools {

namespace {

/// Processes whose parent this one is: proc_pid_children(5). It has one thread.
void kill_children() {
  const std::string self = std::to_string(::getpid());
  std::ifstream children("/proc/" + self + "/task/" + self + "/children");
  for (pid_t child = 0; children >> child;) ::kill(child, SIGKILL);
}

/// Children of a process that ends become this one's (PR_SET_CHILD_SUBREAPER), whatever group or
/// session they are in: one generation dies after the other.
void end_all_below() {
  for (;;) {
    kill_children();
    if (::waitpid(-1, nullptr, 0) < 0 && errno == ECHILD) return;
  }
}

/// Ends as the process of this status did.
[[noreturn]] void end_as(int status) {
  if (!WIFSIGNALED(status)) std::_Exit(WEXITSTATUS(status));
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);  // a core of this process tells nothing
  std::signal(WTERMSIG(status), SIG_DFL);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, WTERMSIG(status));
  ::raise(WTERMSIG(status));
  ::sigprocmask(SIG_UNBLOCK, &mask, nullptr);
  std::_Exit(128 + WTERMSIG(status));
}

/// Takes up all that ended; true where `tool` did.
bool collect(pid_t tool, int& status) {
  for (;;) {
    int ended_with = 0;
    const pid_t ended = ::waitpid(-1, &ended_with, WNOHANG);
    if (ended <= 0) return false;
    if (ended != tool) continue;
    status = ended_with;
    return true;
  }
}

[[noreturn]] void guard(pid_t tool, const sigset_t& waited_for) {
  // Only the tool's process holds its end of the connection, so that the host sees it close.
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  for (;;) {
    const int signal = ::sigwaitinfo(&waited_for, nullptr);
    int status = SIGTERM;
    if (signal == SIGTERM || (signal == SIGCHLD && collect(tool, status))) {
      end_all_below();
      end_as(status);
    }
  }
}

}  // namespace

void begin_guarded() {
  sigset_t waited_for, usual;
  sigemptyset(&waited_for);
  sigaddset(&waited_for, SIGTERM);
  sigaddset(&waited_for, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &waited_for, &usual);
  // Ctrl-C is the host's to answer, and who writes to a terminal is not to be stopped for it.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTTOU, SIG_IGN);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const pid_t host = ::getppid(), guard_process = ::getpid();
  const pid_t tool = ::fork();
  if (tool < 0) std::_Exit(1);
  if (tool > 0) {
    close_to_others();
    guard(tool, waited_for);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != guard_process) std::_Exit(0);
  ::sigprocmask(SIG_SETMASK, &usual, nullptr);
  confine(host, guard_process);
}

}  // namespace citcat::tools
