#pragma once
// A cache line that another processor on the same bus took for itself.

#include <cstdint>
#include <functional>

#include "events/machine/address.h"

namespace citcat {

struct TakenLine {
  std::uint64_t before = 0;  ///< the next transaction of the processor that lost it
  PhysAddr line;             ///< an address within it
};

/// Gives the next one, in the order of the bus; false after the last.
using TakenLineReader = std::function<bool(TakenLine&)>;

}  // namespace citcat
