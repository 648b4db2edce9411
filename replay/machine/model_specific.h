#pragma once

#include <cstdint>
#include <vector>

#include "events/machine/address.h"
#include "events/position.h"

namespace citcat {

/// An instruction whose result differs from one processor model to another.
struct ModelSpecific {
  Position position;
  LinearAddr linear;
  std::vector<std::uint8_t> bytes;  ///< of the instruction
};

}  // namespace citcat
