#pragma once
// Keeps only the last part of a live session: from time to time the emulator stores the machine's
// state, and everything before the oldest state kept is discarded.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/record/emulator_monitor.h"
#include "cli/record/live_session.h"
#include "cli/record/qcow2_file.h"
#include "cli/record/replay_log.h"

namespace citcat {

class SessionKeeper {
 public:
  /// The session's folder is to take `limit` bytes.
  SessionKeeper(const LiveSession& session, std::uint64_t limit, const Console& console);

  int emulators_end() const { return monitor_.emulators_end(); }
  std::vector<std::string> options() const { return monitor_.options(); }
  /// The machine has been made and waits: stores its first state, and lets it go. Throws IoError
  /// where QEMU cannot store the state of this machine.
  void begin();
  /// Stores a state where it is time, and gives up what is too much. False where the emulator does
  /// not answer any more.
  bool look();
  /// The emulator has ended: the log is completed where it was killed. Returns the states from
  /// which the run can be repeated; none where there is no use in the session.
  std::vector<KeptMoment> finish();

 private:
  using Clock = std::chrono::steady_clock;
  struct Moment {
    KeptMoment kept;
    MachineState state;
    Clock::time_point when;
    bool sure = false;  ///< no request of a disk was under way
  };
  enum class Stored : unsigned char { yes, not_now, no_answer };

  Stored store();
  void check_stored();
  std::vector<std::string> choose_dropped();
  void release_log();
  std::uint64_t used() const;

  const LiveSession& session_;
  const std::uint64_t limit_;
  const Console& console_;
  EmulatorMonitor monitor_;
  std::optional<ReplayLogReader> log_;  ///< since QEMU has begun it
  std::vector<Moment> moments_;         ///< from the oldest
  std::vector<std::string> spoiled_;    ///< states that are of no use
  Clock::time_point next_;
  std::uint64_t stored_ = 0;            ///< states so far
  std::uint64_t head_ = 0;              ///< bytes of the log that each run begins with
  std::uint64_t largest_ = 0;           ///< state
  std::chrono::milliseconds pause_{5};  ///< after which requests of disks have mostly ended
  bool told_ = false;
};

}  // namespace citcat
