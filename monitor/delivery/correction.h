#pragma once
// What a processor returns to, and pushes, where that differs from the emulator.

#include <cstdint>

namespace citcat::monitor {

struct Correction {
  unsigned passed_bytes = 0;     ///< of an instruction that has ended for a processor alone
  std::uint32_t error_code = 0;  ///< a processor's
};

}  // namespace citcat::monitor
