#pragma once
// Sessions of a listening debugger: each is a process of its own, and ends when the debugger does.

#include <signal.h>
#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <set>

namespace citcat {

class Sessions {
 public:
  /// No more than `most` at once. As long as the object lives, signals that end the program and
  /// those of ended sessions come within wait() only.
  explicit Sessions(std::size_t most);
  /// Ends them all.
  ~Sessions();
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  /// Waits until `descriptor` can be read; false where a signal came first. Ended sessions are
  /// collected meanwhile.
  bool wait(int descriptor);
  bool full() const { return running_.size() >= most_; }
  /// Has `session` run in a process, which ends with what it returns. Throws IoError.
  void begin(const std::function<int()>& session);

 private:
  void collect();

  std::size_t most_;
  std::set<pid_t> running_;
  sigset_t usual_mask_;
  struct sigaction usual_child_;
};

}  // namespace citcat
