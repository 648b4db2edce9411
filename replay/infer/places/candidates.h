#pragma once
// The boundaries that an interrupt without a count may be at.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "events/machine/cpu_state.h"
#include "events/placement.h"
#include "replay/infer/places/placement_run.h"
#include "replay/verify/cache_log.h"

namespace citcat {

/// Boundaries that fit what is before them, all with the processor in one state. Copying one is
/// compiled once, in candidates.cc: many sources make, shorten and sort lists of them.
struct BoundaryGroup {
  BoundaryGroup();
  BoundaryGroup(const BoundaryGroup&);
  BoundaryGroup(BoundaryGroup&&) noexcept;
  BoundaryGroup& operator=(const BoundaryGroup&);
  BoundaryGroup& operator=(BoundaryGroup&&) noexcept;
  ~BoundaryGroup();

  CpuState state;
  std::uint64_t stores = 0;  ///< bytes of memory may differ where this does
  Position first;
  std::size_t boundaries = 0;  ///< behind a cache: passed in the window before `first`
  std::uint64_t count = 1;
  std::vector<Position> others;
  bool plainly_counted = false;  ///< has the count of the capture with nothing doubtful in it
};

/// The boundaries that an interrupt may be at.
struct Candidates {
  // Compiled once, too.
  Candidates();
  Candidates(const Candidates&);
  Candidates(Candidates&&) noexcept;
  Candidates& operator=(const Candidates&);
  Candidates& operator=(Candidates&&) noexcept;
  ~Candidates();

  std::size_t interrupt = 0;
  std::optional<PlacementRun::Place>
      window;  ///< the first boundary that fits; none where none does
  std::vector<BoundaryGroup> groups;
  CacheLog passed;                 ///< behind a cache: what it heard in the window
  bool endless = false;            ///< a loop without end: there are more than were counted
  bool too_many = false;           ///< not all were looked at
  bool followed_far = false;       ///< behind a cache: lines were compared as far as is worth it
  bool exhausted = false;          ///< none explains what a line shows
  std::optional<Divergence> left;  ///< where the run to the window diverged from the evidence
};

/// Describes the event by the first of several groups.
void describe(PlacedEvent& event, const std::vector<BoundaryGroup>& groups);

}  // namespace citcat
