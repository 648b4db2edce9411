#pragma once
// Watches whether the repeated run of a session makes progress. QEMU waits for ever if an event of
// its log does not come at the instruction that the log names.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/record/emulator_monitor.h"

namespace citcat {

class RepetitionWatch {
 public:
  /// A run that has not executed an instruction for so long has stopped for good: where the machine
  /// only waits, its time passes at once.
  static constexpr std::chrono::seconds kPatience{30};

  /// Throws IoError.
  RepetitionWatch() = default;
  ~RepetitionWatch();
  RepetitionWatch(const RepetitionWatch&) = delete;
  RepetitionWatch& operator=(const RepetitionWatch&) = delete;

  int emulators_end() const { return monitor_.emulators_end(); }
  std::vector<std::string> options() const { return monitor_.options(); }
  /// The emulator has its end.
  void begin();
  /// The instruction at which the run has stopped.
  std::optional<std::uint64_t> stopped_at() const;

 private:
  void watch();

  EmulatorMonitor monitor_;
  std::atomic<bool> stopped_ = false, leaves_ = false;
  std::atomic<std::uint64_t> instructions_ = 0;
  std::thread thread_;
};

}  // namespace citcat
