#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "events/recording.h"

namespace citcat::bench {

/// A program without surroundings: flat 32-bit code at kOrigin that ends with HLT.
struct Guest {
  static constexpr std::uint32_t kOrigin = 0x100000, kMemory = 0x400000, kStack = 0xffff0;
  std::string name;
  std::vector<std::uint8_t> code;
};

/// Reads a guest built beside the benchmark. Throws IoError.
Guest load_guest(const std::string& name);
/// All of its memory is in the image; runs to the HLT.
Recording guest_recording(const Guest& guest);

}  // namespace citcat::bench
