#pragma once

#include <cstdint>
#include <vector>

#include "events/machine/address.h"
#include "events/position.h"

namespace citcat {

/// An instruction whose result implementations compute differently.
struct ModelSpecific {
  Position position;
  LinearAddr linear;
  std::vector<std::uint8_t> bytes;  ///< of the instruction
};

}  // namespace citcat
