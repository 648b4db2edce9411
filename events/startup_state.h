#pragma once
// The state after INIT and SIPI, in which all processors of a machine but the first one begin.

#include <cstdint>

#include "events/cpu_state.h"

namespace citcat {

/// After INIT (Intel SDM vol. 3, table 9-1, column INIT), waiting for a SIPI. What EDX holds then
/// is listed as unknown: real processors have their signature there, emulators other values.
CpuState state_after_init(const CpuState& before);

/// A SIPI with this vector makes a processor begin that waits for one: real mode at `vector` << 12
/// (SDM vol. 3, 8.4.4.1).
void start_up(CpuState& state, std::uint8_t vector);

}  // namespace citcat
