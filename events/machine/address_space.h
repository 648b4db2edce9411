#pragma once
// The values that distinguish one address space from another.

#include <cstdint>

namespace citcat {

/// Identifies an address space: address_space_of() its CR3.
using AddressSpaceId = std::uint64_t;

/// CR3 without the process-context identifier that CR4.PCIDE puts in its low bits (Intel SDM vol.
/// 3, 4.10.1): an address space may have several.
inline AddressSpaceId address_space_of(std::uint64_t cr3, std::uint32_t cr4) {
  constexpr std::uint64_t kPcide = 1u << 17, kContext = 0xfff;
  return (cr4 & kPcide) != 0 ? cr3 & ~kContext : cr3;
}

}  // namespace citcat
