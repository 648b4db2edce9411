#include "cli/record/recorded_emulator.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <initializer_list>
#include <thread>

#include "formats/io/error.h"

namespace citcat {

std::string system_message(const std::string& what) { return what + ": " + std::strerror(errno); }

namespace {

/// In the child.
[[noreturn]] void become(const std::vector<std::string>& command,
                         std::initializer_list<int> inherited, pid_t parent) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);                                         // it is gone already
  for (const int descriptor : inherited) (void)fcntl(descriptor, F_SETFD, 0);  // -1: none
  execvp(argv[0], argv.data());
  const std::string message = system_message(std::string("citcat: error: ") + argv[0]) + "\n";
  (void)!::write(STDERR_FILENO, message.data(), message.size());
  _exit(127);
}

}  // namespace

Pipe::Pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw IoError(system_message("pipe"));
  read = FileDescriptor(ends[0]);
  write = FileDescriptor(ends[1]);
  // Larger than the default, so that emulator and compressor wait for each other less often.
  (void)fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
}

RecordedEmulator::RecordedEmulator(const std::vector<std::string>& command, Pipe& data,
                                   Pipe& control, int log, int inherited) {
  const pid_t parent = getpid();
  child_ = fork();
  if (child_ < 0) throw IoError(system_message("fork"));
  if (child_ == 0)
    become(command, {data.write.value(), control.write.value(), log, inherited}, parent);
  data.write = FileDescriptor();
  control.write = FileDescriptor();
}

RecordedEmulator::RecordedEmulator(const std::vector<std::string>& command, int input,
                                   int inherited) {
  const pid_t parent = getpid();
  child_ = fork();
  if (child_ < 0) throw IoError(system_message("fork"));
  if (child_ == 0 && input >= 0) dup2(input, STDIN_FILENO);
  if (child_ == 0) become(command, {inherited}, parent);
}

bool RecordedEmulator::has_ended(std::chrono::milliseconds patience) const {
  constexpr std::chrono::milliseconds kStep{10};
  for (std::chrono::milliseconds waited{0}; waited < patience; waited += kStep) {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == child_)
      return true;
    std::this_thread::sleep_for(kStep);
  }
  return false;
}

RecordedEmulator::~RecordedEmulator() {
  if (child_ <= 0) return;
  stop();
  wait();
}

void RecordedEmulator::stop() const {
  if (child_ > 0) ::kill(child_, SIGTERM);
}

void RecordedEmulator::kill() const {
  if (child_ > 0) ::kill(child_, SIGKILL);
}

std::string RecordedEmulator::wait() {
  int status = 0;
  while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
  if (WIFSIGNALED(status))
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  if (WEXITSTATUS(status) == 127) return "could not be started";
  if (WEXITSTATUS(status) != 0) return fmt::format("ended with status {}", WEXITSTATUS(status));
  return "";
}

}  // namespace citcat
