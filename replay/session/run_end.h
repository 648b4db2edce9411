#pragma once
// Where a replay has to stop if the recorded run ended within a repeated instruction.

#include <algorithm>
#include <cstdint>

#include "events/position.h"

namespace citcat {

/// Whether a replay up to `to` of a run that ended at `end` needs ReplayOptions::end, because the
/// run ended within a REP.
inline bool ends_within_repeat(Position end, std::uint64_t to) {
  return end.iteration != 0 && to > end.instruction;
}
/// The first instruction that a replay up to `to` of a run that ended at `end` does not make.
inline std::uint64_t last_stop(Position end, std::uint64_t to) {
  return std::min(to, end.instruction + (end.iteration == 0 ? 0 : 1));
}

}  // namespace citcat
