#pragma once

#include <cstdint>
#include <vector>

#include "events/position.h"

namespace citcat {

/// An instruction whose result implementations compute differently.
struct ModelSpecific {
  Position position;
  std::uint32_t linear = 0;
  std::vector<std::uint8_t> bytes;  ///< of the instruction
};

}  // namespace citcat
