#pragma once
// Registers that are one place, whatever their size. Private to the room.

#include <vector>

#include "x86/flow/value_flow.h"

namespace citcat::flow {

/// Moves into and out of such a register have no byte for each byte: all of what is moved in makes
/// it, and it makes each byte that is moved out. Bytes beyond its size are cleared.
/// `wide`: control and debug registers have 64 bits.
void join_whole_registers(bool wide, std::vector<ValueEffect>& effects);

}  // namespace citcat::flow
