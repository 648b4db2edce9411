#pragma once
// Events between the iterations of repeated strings, where a monitor shows one interrupt in
// thirteen (../shared/data/machine/SURPRISES.md, 4).

#include <cstdint>

#include "events/recording.h"

namespace citcat {

/// Adds some NMIs and external writes inside repeated strings of the run, near what these access:
/// found by replaying the recording instruction by instruction up to each.
void add_events_in_repeats(Recording& recording, std::uint64_t seed);

}  // namespace citcat
