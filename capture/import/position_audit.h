#pragma once
// Decides which instruction counts of a capture can be trusted, and strips the others. A monitor
// without a counter fills the field with zeros or ones; one that can only read the processor's
// counter at interrupts repeats the last value.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "events/access_run.h"
#include "events/bus_transaction.h"

namespace citcat {

/// Which transactions carry a position that was counted.
enum class Counting : std::uint8_t { none, interrupts, all };

class PositionAudit {
 public:
  explicit PositionAudit(Counting at_most) : counting_(at_most) {}

  /// Judges by the first transactions of the recording. `at_end`: there are no others.
  void judge(std::span<const BusTransaction> first, bool at_end);

  /// Clears kPositionKnown where the position is not to be believed. Counts that run backwards end
  /// the belief in all that follow.
  void apply(BusTransaction& t) {
    if (!t.has(kPositionKnown)) return;
    if (counting_ == Counting::all && t.position.instruction + kDisorder >= latest_) {
      if (t.position.instruction > latest_) latest_ = t.position.instruction;
      return;
    }
    apply_slow(t);
  }

  /// The same for a run, all of whose positions are believed or none is: false where it is not so,
  /// and nothing was done.
  bool apply(AccessRun& run) {
    if (!run.counted) return true;
    if (counting_ == Counting::all) {
      if (run.disorder > kDisorder || run.lowest + kDisorder < latest_) return false;
      latest_ = std::max(latest_, run.highest);
    } else {
      run.counted = false;
    }
    return true;
  }

  Counting counting() const { return counting_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  // Processors with queues and buffers let a write reach the bus after the next instructions
  // began; counts of such neighbours may be in either order.
  static constexpr std::uint64_t kDisorder = 64;

  void apply_slow(BusTransaction& t);
  void lose(Counting rest, const BusTransaction& t, const std::string& why);

  Counting counting_;
  std::uint64_t latest_ = 0;
  std::uint64_t latest_interrupt_ = 0;
  std::vector<std::string> warnings_;
};

}  // namespace citcat
