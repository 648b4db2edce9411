#pragma once
// Which of many places an interrupt may be at, as far as the lines on the bus show it.
//
// Wherever in a stretch of code the handler runs, it makes the same accesses; the stretch does too.
// So one run gives the accesses, and a model of the cache shows for every place which lines they
// move: lines used before the handler are evicted earlier than lines used after it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "replay/verify/cache_follower.h"
#include "replay/verify/cache_log.h"

namespace citcat {

/// The accesses of one run, with the interrupt at the first place.
struct Interleaved {
  CacheLog before;  ///< from the first place on without the interrupt; boundary by boundary
  CacheLog after;   ///< of the interrupt, its handler, and what follows
  /// Where in `after` the handler has come back to the first place; its size when it did not.
  std::size_t returned = 0;
};

/// A place where the interrupt may be.
struct InterruptPlace {
  std::size_t boundaries = 0;  ///< passed since the first place
  bool in_repeat = false;      ///< between iterations of a REP, which is fetched again after it
};

/// For each of `places`, in ascending order, whether the run with the interrupt there moves
/// `lines`, beginning with `model` at the first place.
std::vector<bool> places_that_fit(const CacheModel& model, const Interleaved& run,
                                  std::span<const CacheFollower::Line> lines,
                                  std::span<const InterruptPlace> places);

}  // namespace citcat
