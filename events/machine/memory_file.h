#pragma once

#include <string>

#include "events/machine/memory_image.h"

namespace citcat {

/// Reads a memory image of any form in docs/formats/memory-image.md. Throws FormatError with the
/// place in the file when it is damaged, IoError when it cannot be read.
MemoryImage load_memory_image(const std::string& path);

}  // namespace citcat
