#pragma once
// Where reads need not return what was written last.

#include <cstdint>

#include "events/bus_transaction.h"

namespace citcat {

/// Adapters and firmware from A0000h to FFFFFh, and what lies beyond the memory but below 4 GiB;
/// `ram_bytes`: of the memory below 4 GiB, 0 where it is not known where that ends.
inline bool is_device(PhysAddr address, std::uint32_t ram_bytes) {
  constexpr std::uint32_t kAdapters = 0xa0000, kAboveAdapters = 0x100000;
  constexpr std::uint64_t kHigh = std::uint64_t{1} << 32;
  const std::uint64_t a = address.value;
  if (a >= kHigh) return false;
  return (a >= kAdapters && a < kAboveAdapters) || (ram_bytes != 0 && a >= ram_bytes);
}

/// The same, and what is uncacheable.
inline bool is_device(const BusTransaction& t, std::uint32_t ram_bytes) {
  return t.has(kUncacheable) || is_device(t.address, ram_bytes);
}

}  // namespace citcat
