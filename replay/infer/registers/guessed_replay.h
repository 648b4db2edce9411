#pragma once
// One replay of a recording with a guessed initial state, compared with the bus by order alone. The
// recovery of registers uses it in real and in protected mode.
//
// It is no ReplaySession: the guess is in no archive, nothing returns to an earlier state, and a
// difference is what the caller looks for.

#include <cstdint>
#include <vector>

#include "events/recording.h"
#include "replay/session/replayer.h"
#include "replay/session/time_budget.h"
#include "replay/verify/bus_order_check.h"

namespace citcat {

/// How far a replay with some values agrees with the bus, up to the first interrupt without a
/// place.
struct RecoveryProgress {
  std::uint64_t agreed = 0;  ///< bytes
  std::uint64_t instructions = 0;
  std::optional<BusOrderCheck::Difference> difference;
  std::optional<Divergence> stopped;  ///< the replay could not go on
  bool ok() const { return !difference && !stopped; }
  bool same(const RecoveryProgress& other) const {
    return agreed == other.agreed && difference == other.difference &&
           stopped.has_value() == other.stopped.has_value();
  }
};

/// Why nothing was found when `time` is spent.
Divergence given_up(const TimeBudget& time);
/// The progress of a replay that there was no time for.
RecoveryProgress no_progress(const TimeBudget& time);

class GuessedReplay {
 public:
  struct Options {
    std::uint64_t to = ~std::uint64_t{0};  ///< instruction
    bool compares = true;                  ///< else the bus may show anything
    std::vector<Observer*> observers;
    TimeBudget* time = nullptr;  ///< when it is spent the replay ends; may be null
  };
  /// All must outlive the replay.
  GuessedReplay(const Recording& recording, const EvidenceSource& evidence, BusOrderCheck& check,
                const Options& options);
  GuessedReplay(const GuessedReplay&) = delete;
  GuessedReplay& operator=(const GuessedReplay&) = delete;

  /// What no evidence defines in the lowest `bytes` reads as zero: a wrong address is to be seen,
  /// not to stop the replay.
  void define_memory(std::uint32_t bytes);
  Machine& machine() { return replayer_->machine(); }
  /// Up to the end, or until nothing has agreed for long. Where the time is spent, as no_progress()
  /// says.
  RecoveryProgress run();

 private:
  bool goes_on(Position now);

  BusOrderCheck& check_;
  TimeBudget* const time_;
  std::unique_ptr<Replayer> replayer_;
  std::uint64_t agreed_before_ = ~std::uint64_t{0};  ///< when it was looked at last
  std::uint64_t next_look_;                          ///< instruction
};

}  // namespace citcat
