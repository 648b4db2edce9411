#pragma once
// Causes that lie in the data of a capture: a read that was captured wrongly, or a write that the
// capture lacks.

#include <cstdint>
#include <span>
#include <vector>

#include "replay/diagnose/processors/bus_trouble.h"
#include "replay/diagnose/processors/machine_causes.h"
#include "replay/diagnose/processors/replayed_accesses.h"

namespace citcat {

/// `accesses`: of each processor's replay around the trouble. `line_bytes`: of a cache line; 0
/// where the processors cache no writes.
std::vector<MachineCause> data_causes(const BusTrouble& trouble, const BusNeighbourhood& near,
                                      std::span<const std::vector<ReplayedAccess>> accesses,
                                      std::uint32_t line_bytes);

}  // namespace citcat
