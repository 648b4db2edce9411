#pragma once
// What the chunks of an archive say of several processors together.

#include <vector>

#include "events/archive/container.h"
#include "events/archive/machine_codec.h"

namespace citcat {

struct MachineChunks {
  MachineInfo info;            ///< of no processors where the archive says nothing of them
  std::vector<BusNote> notes;  ///< in the order of clocks
};

/// Throws FormatError.
MachineChunks machine_chunks(const ContainerReader& container);

}  // namespace citcat
