#pragma once
// Choices among several possible places of an interrupt, to return to when later traffic refutes
// them.

#include <cstddef>
#include <functional>
#include <vector>

#include "replay/infer/places/candidates.h"
#include "replay/infer/places/frame_watch.h"
#include "replay/infer/places/line_decider.h"
#include "replay/infer/places/placement_run.h"

namespace citcat {

/// A choice that later traffic may refute.
struct Choice {
  std::size_t event = 0;  ///< number in PlacementReport::events
  Candidates left;        ///< groups not tried to the end; never empty
  BoundaryGroup taken;
};

/// The return address that a line shows, or as much of it, is that of the boundary.
bool returns_there(const BoundaryGroup& group, const FrameWatch::Found& found);

class Backtracker {
 public:
  Backtracker(PlacementRun& run, LineDecider& lines) : run_(run), lines_(lines) {}

  bool empty() const { return choices_.empty(); }
  /// Notes that the first of `candidates` was taken for the event. If there are many choices, the
  /// latest are kept, because they are the likeliest to be wrong.
  void add(std::size_t event, const Candidates& candidates);
  /// The choice made for an event; null where none was, or it is no longer kept.
  const Choice* of(std::size_t event) const;
  /// Fewer are left of the event than were, or none besides the one that was taken.
  void narrow(std::size_t event, std::vector<BoundaryGroup> left);

  /// The run diverged from the evidence: makes the latest choice ready to be taken back. False if
  /// there is none, or too much was tried already.
  bool revise();
  /// A line shows the latest choices to be wrong from that of `found` on: drops those after it, and
  /// keeps of it what leaves what the line shows; all, where none does: then something before is
  /// not as it was. `shows_memory` says whether memory is as found.
  void correct(const FrameWatch::Found& found,
               const std::function<bool(const FrameWatch::Found&)>& shows_memory);
  /// The latest one, which is no longer kept.
  Choice take_latest();

 private:
  PlacementRun& run_;
  LineDecider& lines_;
  std::vector<Choice> choices_;
  unsigned revisions_ = 0;
};

}  // namespace citcat
