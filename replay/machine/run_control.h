#pragma once
// Ends a run from inside.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "events/position.h"

namespace citcat {

/// Where the run of one machine ends. What is at or after the place where the run ends does not
/// complete: the instruction there may have been begun, and its stores may have been made.
class RunControl {
 public:
  /// The run ends before what is at `position` completes; of several places the first counts. From
  /// outside between two runs; from inside with the position of the current report, and the run
  /// ends there and then.
  void stop_before(Position position) {
    at_ = std::min(at_, position);
    asked_ = true;
  }
  /// Nothing ends the run any more.
  void clear() { *this = RunControl(); }

  bool is_due(Position now) const { return now >= at_; }
  Position at() const { return at_; }
  /// Since the last call somebody asked for the end, and it is due.
  bool is_asked(Position now) { return std::exchange(asked_, false) && is_due(now); }
  /// What was asked for so far is known.
  void settle() { asked_ = false; }

 private:
  Position at_{~std::uint64_t{0}, 0};
  bool asked_ = false;
};

/// Thrown inside the machine where its RunControl ends the run within an instruction or a delivery,
/// and caught by it.
struct RunEnded {};

}  // namespace citcat
