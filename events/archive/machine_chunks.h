#pragma once
// The chunks of an archive that are about several processors together.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "events/archive/container.h"
#include "events/archive/machine_codec.h"

namespace citcat {

struct MachineChunks {
  MachineInfo info;            ///< of no processors where the archive says nothing of them
  std::vector<BusNote> notes;  ///< in the order of clocks
};

/// Both throw FormatError.
MachineChunks machine_chunks(const ContainerReader& container);
/// External writes of a single byte that another processor, or an emulator, is known to have made:
/// the transactions of this one that show them, ascending.
std::vector<std::uint64_t> edges_of(const ContainerReader& container, std::size_t processor);

}  // namespace citcat
