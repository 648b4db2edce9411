#pragma once
// How the size of an instruction's operands is found in 64-bit mode.

#include <cstdint>

#include "x86/decode/opcode_row.h"

namespace citcat {

enum class WideSize : std::uint8_t {
  encoded,      ///< 4 bytes, 2 after 66h, 8 after REX.W
  stack,        ///< 8 bytes, 2 after 66h (Intel SDM vol. 1, 6.2.5)
  near_branch,  ///< always 8 (Intel SDM vol. 2, 2.2.1.7)
  port,         ///< at most 4 (Intel SDM vol. 2, IN, INS, OUT, OUTS)
};
WideSize wide_size(const OpcodeRow& row);

}  // namespace citcat
