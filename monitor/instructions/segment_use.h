#pragma once
// Through which segments an instruction reaches its data, and which segment registers it loads.

#include "monitor/instructions/insn_class.h"

namespace citcat::monitor {

/// Fills in `loads_from`, `stores_to` and `loaded_segments` of an instruction of 16 or 32 bits from
/// its decoded operands. `out` has its kind already. An instruction that reads descriptors too, or
/// makes other accesses in the emulator, has no segments.
void describe_segment_use(const DecodedInstruction& info, InsnClass& out);

}  // namespace citcat::monitor
