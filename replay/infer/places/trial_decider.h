#pragma once
// Which of several boundaries an interrupt was at, as far as the traffic that follows shows it:
// each is tried from a checkpoint, further and further.

#include <cstdint>
#include <vector>

#include "events/placement.h"
#include "replay/infer/places/candidates.h"
#include "replay/infer/places/placement_run.h"

namespace citcat {

class TrialDecider {
 public:
  explicit TrialDecider(PlacementRun& run) : run_(run) {}
  /// Drops those that what follows refutes, all of them perhaps, and says what is known of those
  /// left. Leaves the replay elsewhere. There is a window.
  Placement decide(Candidates& candidates);

 private:
  struct Trial {
    bool survived = false;
    /// The first transaction that was not made; all ones where everything was that had to be.
    std::uint64_t reached = ~std::uint64_t{0};
    CpuState state;        ///< where it ended
    std::uint64_t io = 0;  ///< port accesses by then
    bool operator==(const Trial&) const = default;
  };
  std::vector<Trial> try_all(Candidates& candidates, std::uint64_t writes);
  Trial try_group(const Candidates& candidates, const BoundaryGroup& group, std::uint64_t writes);
  bool frame_agreed(std::size_t interrupt, const BoundaryGroup& group) const;

  PlacementRun& run_;
};

}  // namespace citcat
