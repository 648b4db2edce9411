#pragma once
// External writes that other processors made need not be kept: where a processor reads what another
// one wrote last, the other's recording has the value, and the order of the bus says which value it
// was.

#include <cstdint>
#include <vector>

#include "events/processors/shared_bus.h"

namespace citcat {

/// By processor, its external writes: those of its recording, and those that follow from what the
/// others wrote. The latter have positions and no anchors.
std::vector<std::vector<ExternalWrite>> derive_external_writes(std::vector<ProcessorShare> shares,
                                                               std::vector<BusNote> notes,
                                                               std::uint32_t ram_bytes);

/// Whether two are alike, but for their anchors.
bool is_same_change(const ExternalWrite& a, const ExternalWrite& b);

}  // namespace citcat
