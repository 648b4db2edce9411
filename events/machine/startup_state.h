#pragma once
// The state after INIT and SIPI, in which all processors of a machine but the first one begin, and
// the state after a reset.

#include <cstdint>
#include <optional>

#include "events/machine/cpu_state.h"

namespace citcat {

/// After INIT (Intel SDM vol. 3, table 9-1, column INIT), waiting for a SIPI. What EDX holds then
/// is listed as unknown: real processors have their signature there, emulators other values.
CpuState state_after_init(const CpuState& before);

/// After RESET (the same table, column Reset), with the processor's signature in EDX, which is
/// listed as unknown without one. x87 and MXCSR are as FNINIT and reset leave them
/// (CpuState::default_fx()).
CpuState state_after_reset(const CpuState& before, std::optional<std::uint32_t> signature);

/// A SIPI with this vector makes a processor begin that waits for one: real mode at `vector` << 12
/// (SDM vol. 3, 8.4.4.1).
void start_up(CpuState& state, std::uint8_t vector);

}  // namespace citcat
