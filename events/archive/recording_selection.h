#pragma once
// SLCT chunks: which recording of an archive the following chunks belong to
// (docs/formats/archive.md).

#include <cstddef>
#include <cstdint>
#include <vector>

#include "events/archive/container.h"

namespace citcat {

std::vector<std::uint8_t> encode_selection(std::size_t number);

/// The recordings that the container's selections name, in their order. Those of the last container
/// are kept, because a caller that goes through thousands of recordings in one file opens it for
/// each. Valid until the next call of this thread. Throws FormatError.
const std::vector<std::size_t>& selections_of(const ContainerReader& container);

}  // namespace citcat
