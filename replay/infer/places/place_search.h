#pragma once
// The search of replay/infer/places/event_placer.h: one interrupt after the other, with the places
// to which it can return. CandidateWindow finds the boundaries that fit the traffic before an
// interrupt. TrialDecider decides which of them fit the traffic after it, and behind a write-back
// cache LineDecider and PushedFrames. HiddenInterrupts finds interrupts that the bus does not show
// themselves. Backtracker keeps the choices that may have to be undone.

#include <cstddef>
#include <optional>
#include <vector>

#include "events/placement.h"
#include "events/recording.h"
#include "replay/infer/places/backtracker.h"
#include "replay/infer/places/candidate_window.h"
#include "replay/infer/places/candidates.h"
#include "replay/infer/places/event_placer.h"
#include "replay/infer/places/hidden_interrupts.h"
#include "replay/infer/places/line_decider.h"
#include "replay/infer/places/placement_run.h"
#include "replay/infer/places/pushed_frames.h"
#include "replay/infer/places/trial_decider.h"

namespace citcat {

class PlaceSearch {
 public:
  /// All must outlive the search.
  PlaceSearch(const Recording& recording, const EvidenceSource& evidence,
              const PlacerOptions& options);
  /// Once.
  PlacementReport run();

 private:
  void place_all();
  bool place_next(std::size_t interrupt);
  bool place_hidden(std::size_t interrupt);
  void dismiss(std::size_t interrupt);
  void accept(Placement placement);
  bool finish();
  bool try_another();
  void take_back();
  void fail(std::size_t interrupt);
  Divergence fits_nowhere(std::size_t interrupt) const;
  void give_up();
  void qualify();

  const PlacerOptions& options_;
  InterruptSurroundings surroundings_;
  PlacementRun run_;
  CandidateWindow window_{run_, surroundings_};
  TrialDecider trials_{run_};
  LineDecider lines_{run_};
  HiddenInterrupts hidden_;
  Backtracker choices_{run_, lines_};
  PlacementReport report_;
  PushedFrames frames_{run_, report_.events, choices_};
  Candidates now_;                  ///< of the interrupt looked for
  std::optional<Divergence> left_;  ///< where the run diverged from the evidence
};

}  // namespace citcat
