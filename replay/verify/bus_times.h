#pragma once
// When the bus showed what a replay does: the comparison reports it as it goes on, for output that
// has a time beside each instruction.

#include <cstdint>
#include <deque>
#include <optional>

#include "events/bus_transaction.h"
#include "events/position.h"

namespace citcat {

/// Clocks are those of the capture. Without clocks in it, and of what no transaction belongs to,
/// nothing is known.
class BusTimes {
 public:
  // Told by a comparison (VerifierOptions::times), in the order of the run.
  /// `t` was read from the evidence, where its place in the run may be counted.
  void captured(const BusTransaction& t);
  /// `t` is what the replay does at `now`.
  void agreed(const BusTransaction& t, Position now) {
    if (t.has(kClockKnown)) note(t.clock, now);
  }
  /// The pins report that the instruction at `now` begins, or a prefix of it: this says when it
  /// was, whatever else agreed with it.
  void started(const BusTransaction& t, Position now);
  /// What agreed last belongs to a delivery, not to the instruction that comes next.
  void forget() { clock_.reset(); }
  /// An interrupt from outside was delivered at `now`: the next of those that the bus acknowledged.
  void interrupted(Position now);

  /// The clock of the first transaction since the last take() that belongs to what is at `now`.
  std::optional<std::uint64_t> at(Position now);
  /// The same for the last time: what comes at `now` from here on is something else.
  std::optional<std::uint64_t> take(Position now);

 private:
  struct Counted {
    std::uint64_t instruction = 0, clock = 0;
  };
  void note(std::uint64_t clock, Position now);

  std::deque<Counted> counted_;               ///< read, of instructions to come
  std::deque<std::uint64_t> acknowledges_;    ///< clocks of those that were not delivered yet
  std::uint64_t interrupts_without_one_ = 0;  ///< delivered before their acknowledge was read
  Position position_;                         ///< of `clock_`
  std::optional<std::uint64_t> clock_;
  bool started_ = false;  ///< `clock_` is that of a reported start
};

}  // namespace citcat
