#pragma once
// Through which segments an instruction reaches its data, and which segment registers it loads.

#include <cstdint>
#include <span>

#include "monitor/insn_class.h"

namespace citcat::monitor {

/// Fills in `loads_from`, `stores_to` and `loaded_segments` of an instruction of 16 or 32 bits
/// (Intel SDM vol. 1, 3.7.4; vol. 2, A.3). `opcode`: from its opcode on. What its kind and its
/// prefixes say is in `out` already. An instruction that reads tables too, or makes other accesses
/// in the emulator, has no segments.
void note_segment_use(std::span<const std::uint8_t> opcode, InsnClass& out);

}  // namespace citcat::monitor
