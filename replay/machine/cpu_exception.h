#pragma once
// A fault, trap or abort of the replayed processor, as its units throw it.

#include <cstdint>
#include <optional>

namespace citcat {

/// A fault, trap or abort on its way to the guest.
struct CpuException {
  std::uint8_t vector = 0;
  std::optional<std::uint32_t> error_code;
  std::uint64_t cr2 = 0;
};

}  // namespace citcat
