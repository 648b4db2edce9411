#pragma once

#include <compare>
#include <cstdint>

#include "events/position.h"

namespace citcat {

/// A moment of a replay, distinguished from every other one. A position alone does not do that: an
/// instruction that faults and the handler that is entered for it have the same one, and within a
/// REP an interrupt goes back to the beginning of the instruction. Ordered by time.
struct Moment {
  std::uint64_t deliveries = 0;  ///< interrupts, exceptions and software interrupts before it
  Position position;
  constexpr auto operator<=>(const Moment&) const = default;
};

}  // namespace citcat
