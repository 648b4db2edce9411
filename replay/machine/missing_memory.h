#pragma once
// Stops a replay that reads memory which no evidence defines; the replay can continue afterwards.

#include <cstdint>

#include "events/machine/address.h"
#include "replay/machine/replay_stopped.h"

namespace citcat {

/// These bytes were to be read, and no evidence defines them. Once they are defined the machine can
/// run on from the position that it stays at.
struct MissingMemory : ReplayStopped {
  PhysAddr address;
  std::uint32_t size = 0;
};

}  // namespace citcat
