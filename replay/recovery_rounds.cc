#include "replay/recovery_rounds.h"

#include <utility>

#include "replay/event_placer.h"

namespace citcat {

std::optional<Divergence> solve_and_place(
    Recording& recording, const std::function<std::unique_ptr<EvidenceReader>()>& evidence,
    const std::function<std::optional<Divergence>()>& solve,
    const std::function<RecoveryProgress()>& replay) {
  constexpr int kMostRounds = 8;
  std::uint64_t agreed = 0;
  for (int round = 0; round < kMostRounds; ++round) {
    if (auto failure = solve()) return failure;
    if (!needs_placement(recording)) return std::nullopt;
    const PlacementReport placed = place_events(recording, evidence, {});
    const RecoveryProgress now = replay();
    if (placed.complete() && now.ok) break;
    if (now.agreed == std::exchange(agreed, now.agreed)) {
      if (placed.divergence) return placed.divergence;
      break;
    }
  }
  if (!needs_placement(recording)) return std::nullopt;
  Divergence failure;
  failure.reason = "the interrupts that follow could not all be placed";
  return failure;
}

}  // namespace citcat
