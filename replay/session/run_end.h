#pragma once
// Where a replay ends whose run ended within a repeated instruction.

#include <algorithm>
#include <cstdint>

#include "events/position.h"

namespace citcat {

/// A run that ended at `end` ended within a REP, and a replay up to `to` does not end by itself:
/// ReplayOptions::end.
inline bool ends_within_repeat(Position end, std::uint64_t to) {
  return end.iteration != 0 && to > end.instruction;
}
/// The instruction before which a replay of such a run stops that is wanted up to `to`.
inline std::uint64_t last_stop(Position end, std::uint64_t to) {
  return std::min(to, end.instruction + (end.iteration == 0 ? 0 : 1));
}

}  // namespace citcat
