#pragma once
// QEMU's monitor, through which a running machine is asked to stop and to keep its state (QEMU,
// docs/interop/qmp-spec.rst).

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "formats/io/file_descriptor.h"

namespace citcat {

class EmulatorMonitor {
 public:
  /// A connection whose other end an emulator is to inherit. Throws IoError.
  EmulatorMonitor();

  int emulators_end() const { return theirs_.value(); }
  /// The emulator has its end.
  void begin() { theirs_ = FileDescriptor(); }
  /// From another thread: no answer is awaited any more.
  void end() const;
  /// The emulator's options for its end.
  std::vector<std::string> options() const;

  /// Carries out a command without arguments, "stop". False where the emulator does not answer in
  /// time or refuses.
  bool execute(const std::string& command);
  /// Carries out a line of the monitor for people. What it prints is empty, or an error; nullopt
  /// where the emulator does not answer in time.
  std::optional<std::string> say(const std::string& line);
  /// The number of instructions so far, while it keeps a log.
  std::optional<std::uint64_t> instructions();

 private:
  std::optional<std::string> ask(const std::string& request);
  std::optional<std::string> next_line(std::chrono::steady_clock::time_point end);

  FileDescriptor ours_, theirs_;
  std::string received_;
  bool greeted_ = false;
};

}  // namespace citcat
