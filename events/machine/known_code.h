#pragma once
// Code from another source than the capture: a program's file, the image of a ROM.

#include <cstdint>
#include <string>
#include <vector>

#include "events/machine/address.h"

namespace citcat {

/// A stretch of code that a file holds.
struct KnownCode {
  LinearAddr begin;          ///< where it lay in memory
  std::uint64_t offset = 0;  ///< where it is in the file
  std::string file;
  std::vector<std::uint8_t> bytes;
};

}  // namespace citcat
