#pragma once
// What a search works out of a recording, taken over by it: for tests that replay it afterwards.

#include <utility>

#include "capture/import/import.h"
#include "replay/infer/places/event_placer.h"
#include "replay/infer/registers/state_recovery.h"

namespace citcat::test {

/// Searches for the places of interrupts; the recording then has them.
inline PlacementReport place_interrupts(ImportedRecording& imported,
                                        const PlacerOptions& options = {}) {
  PlacementReport report = place_events(
      imported.recording, [&imported] { return imported.read_evidence(); }, options);
  imported.recording.set_schedule(std::exchange(report.schedule, {}));
  return report;
}

/// Recovers the initial state; the recording then has it.
inline RecoveredState recover_registers(ImportedRecording& imported) {
  RecoveredState recovered =
      recover_state(imported.recording.clone(), [&imported] { return imported.read_evidence(); });
  imported.recording = std::exchange(recovered.recording, {});
  return recovered;
}

}  // namespace citcat::test
