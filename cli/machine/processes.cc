#include "cli/machine/processes.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>

#include "cli/interrupt.h"
#include "cli/part_failure.h"
#include "formats/io/error.h"
#include "formats/io/temporary.h"

namespace citcat {
namespace {

/// The first byte of a result if the work succeeded; otherwise this byte is a PartFailure.
constexpr char kDone = 'd';

void write_all(int to, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(to, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) std::_Exit(1);  // nobody reads on
    done += static_cast<std::size_t>(n);
  }
}

[[noreturn]] void work_in_process(const std::function<std::string(std::size_t)>& work,
                                  std::size_t number, int to) {
  // Its own outputs are its own to remove; those of the process that forked are not.
  leave_unfinished_files();
  install_interrupt_handler();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  std::string told;
  try {
    told = kDone + work(number);
  } catch (const std::exception& e) {
    told = static_cast<char>(failure_of(e)) + std::string(e.what());
  }
  write_all(to, told);
  std::_Exit(0);
}

class WorkerProcess {
 public:
  WorkerProcess(const std::function<std::string(std::size_t)>& work, std::size_t number) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0)
      throw IoError(std::string("a pipe to another process: ") + std::strerror(errno));
    std::fflush(nullptr);
    process_ = ::fork();
    if (process_ == 0) {
      ::close(ends[0]);
      work_in_process(work, number, ends[1]);
    }
    ::close(ends[1]);
    from_ = ends[0];
    if (process_ < 0)
      throw IoError(std::string("a process for a processor: ") + std::strerror(errno));
  }
  ~WorkerProcess() {
    ::close(from_);
    if (process_ <= 0) return;
    ::kill(process_, SIGTERM);
    ::waitpid(process_, nullptr, 0);
  }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  std::string result() {
    std::string told;
    std::array<char, 65536> some;
    for (;;) {
      // A signal does not end a read, which is begun again.
      constexpr int kMilliseconds = 50;
      pollfd ready{from_, POLLIN, 0};
      check_interrupt();
      if (::poll(&ready, 1, kMilliseconds) == 0) continue;
      const ssize_t n = ::read(from_, some.data(), some.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      told.append(some.data(), static_cast<std::size_t>(n));
    }
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
    if (told.empty()) throw InternalError("the process of a processor ended without a result");
    if (told.front() != kDone) throw_of_part(PartFailure(told.front()), told.substr(1));
    return told.substr(1);
  }

 private:
  int from_ = -1;
  pid_t process_ = 0;
};

}  // namespace

std::vector<std::string> run_side_by_side(std::size_t count, unsigned jobs,
                                          const std::function<std::string(std::size_t)>& work,
                                          const std::function<void()>& meanwhile) {
  std::vector<std::string> results;
  if (jobs <= 1 || count <= 1) {
    if (meanwhile) meanwhile();
    for (std::size_t i = 0; i < count; ++i) results.push_back(work(i));
    return results;
  }
  std::vector<std::unique_ptr<WorkerProcess>> workers(count);
  std::size_t begun = 0;
  for (std::size_t i = 0; i < count; ++i) {
    for (; begun < count && begun < i + jobs; ++begun)
      workers[begun] = std::make_unique<WorkerProcess>(work, begun);
    if (i == 0 && meanwhile) meanwhile();
    results.push_back(workers[i]->result());
    workers[i].reset();
  }
  return results;
}

}  // namespace citcat
