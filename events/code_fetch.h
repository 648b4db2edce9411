#pragma once
// How the fetches of an 8086 follow one another.

#include <cstdint>

#include "events/address.h"

namespace citcat {

/// Whether a fetch from `a` goes on where the last one ended, at `next`. Both have the address bits
/// of `mask` alone. IP wraps at 64 KiB within the code segment.
inline bool goes_on_fetching(PhysAddr next, PhysAddr a, std::uint32_t mask) {
  return a == next || a == next.plus32(0u - 0x10000u).masked32(mask);
}

}  // namespace citcat
