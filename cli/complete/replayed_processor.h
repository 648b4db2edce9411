#pragma once
// The machine as a processor that completes addresses: it has no memory of its own. Everything that
// it reads comes from the bus, even what it has written itself, as on processors without a cache.

#include <memory>

#include "capture/complete/guided_processor.h"
#include "events/machine/cpu_state.h"
#include "events/recording.h"

namespace citcat {

/// A processor of 20 address pins, in real mode, in this state. Registers that are listed as
/// unknown stop the run where they matter.
std::unique_ptr<GuidedProcessor> make_replayed_processor(const CpuState& state,
                                                         const BusModel& bus);

}  // namespace citcat
