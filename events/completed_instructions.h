#pragma once
// How many instructions a recording has: the same number in every command.

#include <cstdint>
#include <optional>

#include "events/recording.h"

namespace citcat {

/// Instructions that the capture shows to complete, where it counts them. One more may have begun,
/// which the evidence ends within (Recording::end): a REP that goes on when the capture ends, or
/// an instruction after which pins show no other to start.
inline std::optional<std::uint64_t> completed_instructions(const Recording& recording) {
  if (!recording.instructions || !recording.end) return recording.instructions;
  return recording.end->instruction < *recording.instructions
             ? std::optional(recording.end->instruction)
             : recording.instructions;
}

/// The capture shows that one instruction more has begun, but not how far it came: only evidence
/// says where a replay is to end within it. Recording::end is the beginning of that one then.
inline bool begins_another(const Recording& recording) {
  return recording.instructions && recording.end && recording.end->iteration == 0 &&
         recording.end->instruction + 1 == *recording.instructions;
}

}  // namespace citcat
