#pragma once
// Finds the positions of interrupts for which the capture has no count.
//
// The bus shows an acknowledge between two transactions. The processor took the interrupt at a
// boundary between the instructions that caused them. There all stores and port accesses before it
// have been made and none after it, interrupts are enabled, and the address of the next instruction
// is among what is stored right afterwards. If a loop leaves several such boundaries, each is tried
// from a checkpoint against the traffic that follows: what the handler saves distinguishes most of
// them. Behind a write-back cache, lines on the bus take the place of stores and reads.
// docs/placement.md says which cases remain.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "events/archive/recording_file.h"
#include "events/placement.h"
#include "events/recording.h"
#include "replay/session/replay_report.h"
#include "replay/verify/comparison_policy.h"

namespace citcat {

class TimeBudget;

struct PlacementReport {
  Schedule schedule;                ///< the recording's, with the positions found
  std::vector<PlacedEvent> events;  ///< those without a count, in order
  /// Where the replay diverged from the evidence before everything was placed.
  std::optional<Divergence> divergence;
  std::uint64_t tried = 0;         ///< boundaries tried from a checkpoint
  std::uint64_t instructions = 0;  ///< executed, also for trials
  std::uint64_t count(Placement placement) const;
  /// Why the search was cut short (TimeBudget::text()); else empty.
  std::string given_up;
  bool complete() const { return !divergence && count(Placement::none) == 0; }
};

/// True when some interrupt has no position.
bool needs_placement(const Schedule& schedule);

struct PlacerOptions {
  /// Changes of a single bit are accepted whatever the policy says, because the search need not
  /// judge them. For an archive, its waived transactions are added.
  ComparisonPolicy policy;
  /// Called now and then with the position.
  std::function<void(Position)> progress;
  /// When it is spent, the interrupts not yet placed stay without positions. May be null.
  TimeBudget* time = nullptr;
};

/// Finds positions for the interrupts of `recording` that have none. If one cannot be placed, it
/// and all after it stay as they are. `evidence` opens the recording's evidence from its start.
PlacementReport place_events(const Recording& recording, const EvidenceSource& evidence,
                             const PlacerOptions& options);
/// The same for an archive; nullopt if it is not needed or there is no evidence. The file's
/// recording() then has the schedule that was found, and the report's schedule is empty.
std::optional<PlacementReport> place_events(RecordingFile& file, const PlacerOptions& options);

}  // namespace citcat
