#pragma once
// Which of several boundaries an interrupt was at, as far as the lines of a write-back cache show
// it: one run of the handler from the first of them gives the accesses, and a model of the cache
// moves lines for each.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "replay/infer/places/candidates.h"
#include "replay/infer/places/interleaving.h"
#include "replay/infer/places/placement_run.h"

namespace citcat {

class LineDecider {
 public:
  /// Decides lines of a run behind a cache.
  explicit LineDecider(PlacementRun& run) : run_(run) {}

  /// Drops those that the lines that follow refute, unless that is all of them. `far`: looks
  /// further than it would at first. Leaves the replay elsewhere. There is a window.
  void decide(Candidates& candidates, bool far);
  /// Lets the handler of an interrupt at `group` run: until its frame has this age, or without an
  /// age, until it has returned.
  void run_handler(const Candidates& candidates, const BoundaryGroup& group,
                   std::optional<std::uint64_t> age);
  /// The frame goes to the same place from the first of them as from the last.
  static bool have_one_stack(const std::vector<BoundaryGroup>& groups);

 private:
  /// Until when a handler is followed.
  struct End {
    std::uint64_t instructions = 0;  ///< after the boundary, at most
    bool with_frame = false;         ///< until its frame has returned, or
    std::uint64_t age = 0;           ///< has this age
  };
  Interleaved log_handler(const Candidates& candidates, const BoundaryGroup& group, End end);
  bool watch_handler(Position now, const Candidates& candidates, const BoundaryGroup& group,
                     const End& end);
  std::vector<BoundaryGroup> fitting(const Candidates& candidates,
                                     const std::vector<BoundaryGroup>& groups,
                                     std::uint64_t instructions);

  PlacementRun& run_;
  Interleaved log_;
  std::size_t log_begins_ = 0;  ///< in log_.after, which begins with the window
};

}  // namespace citcat
