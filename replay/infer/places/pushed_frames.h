#pragma once
// Behind a write-back cache: what lines that are evicted later say about the places that were
// chosen.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "events/placement.h"
#include "replay/infer/places/backtracker.h"
#include "replay/infer/places/candidates.h"
#include "replay/infer/places/placement_run.h"

namespace citcat {

class PushedFrames {
 public:
  /// All must outlive the frames. Narrows `events` and `choices` where a line tells more of one.
  PushedFrames(PlacementRun& run, std::vector<PlacedEvent>& events, Backtracker& choices);

  /// What the interrupt of this event, which is delivered next, leaves in memory is watched for;
  /// `groups` fit.
  void watch(std::size_t event, const std::vector<BoundaryGroup>& groups);
  /// No event is watched.
  bool empty() const { return open_.empty(); }
  /// A line has shown that the place of an event is another: the run was stopped for it.
  bool found_wrong() const { return wrong_.has_value(); }
  /// What it was; the run may go on from elsewhere.
  FrameWatch::Found take_wrong();
  /// The line, as memory would be left by the handler, holds what it shows.
  bool shows_memory(const FrameWatch::Found& found) const;
  /// This event and those after it have no places any more.
  void forget_from(std::size_t event);

 private:
  void line_written_back(const CacheFollower::Line& line);
  void learn(const FrameWatch::Found& found);
  bool can_tell(const FrameWatch::Found& found) const;
  void narrowed(std::size_t event);
  void believe(const FrameWatch::Found& found);
  void believe_rest(PhysAddr line, std::span<const std::uint8_t> bytes);

  PlacementRun& run_;
  std::vector<PlacedEvent>& events_;
  Backtracker& choices_;
  std::unordered_map<std::size_t, std::vector<BoundaryGroup>> open_;  ///< by event: what fits
  std::vector<std::size_t> uncertain_;  ///< events since the bus last showed what they left
  std::optional<FrameWatch::Found> wrong_;
};

}  // namespace citcat
