#pragma once

#include <cstdint>
#include <span>

namespace citcat {

/// General registers that an instruction reads and writes, addresses of its operands included.
struct RegisterUse {
  std::uint8_t reads = 0, writes = 0;  ///< bit g: Gpr g, any part of it
  bool reads_flags = false, writes_flags = false;  ///< of EFLAGS, the arithmetic ones
};

/// Of the instruction that `bytes` are, in code of 16 or 32 `bits`. Bytes that are none use nothing.
RegisterUse register_use(std::span<const std::uint8_t> bytes, int bits);

}  // namespace citcat
