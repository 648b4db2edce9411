#pragma once
// What working registers out takes in real and in protected mode alike.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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

/// Why such a replay, in which no register can be changed any more, does not go further.
Divergence describe(const RecoveryProgress& now);

/// The run begins at its first interrupt. Returns which of them have places.
std::vector<bool> begin_at_first_interrupt(Schedule& schedule);
/// Why nothing was found when `time` is spent.
Divergence given_up(const TimeBudget& time);
/// Forgets the places of all others.
void take_back_placements(Schedule& schedule, const std::vector<bool>& counted);

/// How many interrupts, from the first on, have places.
std::size_t placed_interrupts(const Schedule& schedule);
/// For a replay that `check` compares: it ends when nothing agrees any more for long. `check` must
/// outlive the replay. When `time` is spent it throws BudgetSpent.
ReplayOptions options_of_trial(const EvidenceSource& evidence, const BusOrderCheck& check,
                               TimeBudget* time);
/// What no evidence defines in the lowest `bytes` reads as zero: a wrong address is to be seen, not
/// to stop the replay.
void define_memory(Memory& memory, std::uint32_t bytes);

/// Works registers out and gives places to the interrupts that follow, in turn: each may depend on
/// the other. `solve` finds registers as far as interrupts have places, and returns why it cannot;
/// `replay` tries them. Returns why the recording cannot be followed to its end.
std::optional<Divergence> solve_and_place(Recording& recording, const EvidenceSource& evidence,
                                          const std::function<std::optional<Divergence>()>& solve,
                                          const std::function<RecoveryProgress()>& replay,
                                          TimeBudget* time);

}  // namespace citcat
