#pragma once
// The common steps of working out registers in real and in protected mode.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "events/recording.h"
#include "replay/infer/registers/guessed_replay.h"

namespace citcat {

/// Why such a replay, in which no register can be changed any more, does not go further.
Divergence describe(const RecoveryProgress& now);

/// The run begins at its first interrupt. Returns which of them have places.
std::vector<bool> begin_at_first_interrupt(Schedule& schedule);
/// Forgets the places of all others.
void take_back_placements(Schedule& schedule, const std::vector<bool>& counted);

/// How many interrupts, from the first on, have places.
std::size_t placed_interrupts(const Schedule& schedule);
/// Works registers out and gives places to the interrupts that follow, in turn: each may depend on
/// the other. `solve` finds registers as far as interrupts have places, and returns why it cannot;
/// `replay` tries them. Returns why the recording cannot be followed to its end.
std::optional<Divergence> solve_and_place(Recording& recording, const EvidenceSource& evidence,
                                          const std::function<std::optional<Divergence>()>& solve,
                                          const std::function<RecoveryProgress()>& replay,
                                          TimeBudget* time);

}  // namespace citcat
