#include "replay/infer/registers/recovery_rounds.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <utility>

#include "replay/infer/places/event_placer.h"

namespace citcat {

Divergence describe(const RecoveryProgress& now) {
  Divergence d = now.stopped.value_or(Divergence{});
  if (!now.difference) return d;
  const auto text = [](const BusOrderCheck::Byte& byte) {
    char bytes[64];
    std::snprintf(bytes, sizeof bytes, "byte %02x at %08" PRIx64, byte.value, byte.address.value);
    return std::string(bytes);
  };
  d.transaction = now.difference->expected.transaction;
  d.position = {now.instructions, 0};
  d.reason = "no value of a register that is not known gives what the bus shows";
  d.expected = text(now.difference->expected);
  d.found = text(now.difference->found);
  return d;
}

std::vector<bool> begin_at_first_interrupt(Schedule& schedule) {
  Interrupt& first = schedule.interrupts.front();
  first.position_known = true;
  first.position = {0, 0};
  std::vector<bool> counted;
  for (const Interrupt& i : schedule.interrupts) counted.push_back(i.position_known);
  return counted;
}

void take_back_placements(Schedule& schedule, const std::vector<bool>& counted) {
  for (std::size_t i = 0; i < schedule.interrupts.size(); ++i) {
    if (!counted[i]) schedule.interrupts[i].position_known = false;
  }
}

std::size_t placed_interrupts(const Schedule& schedule) {
  const auto& all = schedule.interrupts;
  const auto end =
      std::find_if(all.begin(), all.end(), [](const Interrupt& i) { return !i.position_known; });
  return static_cast<std::size_t>(end - all.begin());
}

std::optional<Divergence> solve_and_place(Recording& recording, const EvidenceSource& evidence,
                                          const std::function<std::optional<Divergence>()>& solve,
                                          const std::function<RecoveryProgress()>& replay,
                                          TimeBudget* time) {
  constexpr int kMaxRounds = 8;
  std::uint64_t agreed = 0;
  PlacerOptions placing;
  placing.time = time;
  for (int round = 0; round < kMaxRounds; ++round) {
    if (auto failure = solve()) return failure;
    if (!needs_placement(recording)) return std::nullopt;
    PlacementReport placed = place_events(recording, evidence, placing);
    recording.set_schedule(std::move(placed.schedule));
    if (!placed.given_up.empty()) return given_up(*time);
    const RecoveryProgress now = replay();
    if (placed.complete() && now.ok()) break;
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
