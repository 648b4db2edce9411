#include "replay/infer/places/event_placer.h"

#include <algorithm>
#include <utility>

#include "replay/infer/places/place_search.h"

namespace citcat {

std::uint64_t PlacementReport::count(Placement placement) const {
  return static_cast<std::uint64_t>(
      std::count_if(events.begin(), events.end(),
                    [&](const PlacedEvent& e) { return e.placement == placement; }));
}

bool needs_placement(const Schedule& schedule) {
  return std::any_of(schedule.interrupts.begin(), schedule.interrupts.end(),
                     [](const Interrupt& i) { return !i.position_known; });
}

PlacementReport place_events(const Recording& recording, const EvidenceSource& evidence,
                             const PlacerOptions& options) {
  return PlaceSearch(recording, evidence, options).run();
}

std::optional<PlacementReport> place_events(RecordingFile& file, const PlacerOptions& options) {
  const bool possible = file.meta().evidence == EvidenceMode::full;
  if (!possible || !needs_placement(file.recording())) return std::nullopt;
  PlacerOptions all = options;
  all.policy.waived = file.waived();
  all.policy.told_changes = file.told_changes();
  PlacementReport report = place_events(
      file.recording(), [&file] { return file.evidence(); }, all);
  file.set_schedule(std::exchange(report.schedule, {}), report.events);
  return report;
}

}  // namespace citcat
