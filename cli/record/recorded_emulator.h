#pragma once
// An emulator that is recorded, as a child process with a pipe for each stream of its monitor.

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "formats/io/file_descriptor.h"

namespace citcat {

/// With what the system says of the call that just failed: "pipe: Too many open files".
std::string system_message(const std::string& what);

struct Pipe {
  FileDescriptor read, write;
  /// Throws IoError.
  Pipe();
};

/// Inherits the write ends of both pipes, the log, and nothing else. Ends when this process does,
/// however that happens.
class RecordedEmulator {
 public:
  /// Throws IoError when there can be no child; one that cannot be started says so itself.
  /// `inherited`: a descriptor that it gets, too.
  RecordedEmulator(const std::vector<std::string>& command, Pipe& data, Pipe& control, int log,
                   int inherited = -1);
  /// Without a monitor: on the terminal of this process, but with another `input` where one is
  /// given.
  explicit RecordedEmulator(const std::vector<std::string>& command, int input = -1,
                            int inherited = -1);
  /// Stops it and waits.
  ~RecordedEmulator();
  RecordedEmulator(const RecordedEmulator&) = delete;
  RecordedEmulator& operator=(const RecordedEmulator&) = delete;

  /// Asks it to end in order, as its window's close button would.
  void stop() const;
  /// Ends it at once: what its monitor has not sent yet is lost.
  void kill() const;
  /// Whether it ends within so much time. wait() then says how.
  bool has_ended(std::chrono::milliseconds patience) const;
  /// How it ended: "" for status 0.
  std::string wait();

 private:
  pid_t child_ = -1;
};

}  // namespace citcat
