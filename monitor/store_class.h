#pragma once
// Which instructions may store. What only reads can be shown when the next one that does more comes
// along; what stores must be shown before memory has changed.

#include <cstdint>
#include <span>

#include "monitor/insn_class.h"

namespace citcat::monitor {

/// False only of instructions that never write to memory, descriptors among it (Intel SDM vol. 2,
/// A.3). `bytes` holds one instruction of a segment with the given default size.
bool may_store(std::span<const std::uint8_t> bytes, CodeSize size);

}  // namespace citcat::monitor
