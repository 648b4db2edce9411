#pragma once
// How the fetches of an 8086 follow one another.

#include <cstdint>

#include "events/address.h"

namespace citcat {

/// Whether a fetch from `a` goes on where the last one ended, at `next`. Both have the address bits
/// of `mask` alone. IP wraps at 64 KiB within the code segment.
inline bool goes_on_fetching(PhysAddr next, PhysAddr a, std::uint32_t mask) {
  if (a == next || a == next.plus32(0u - 0x10000u).masked32(mask)) return true;
  // Lines that were not captured, all of them high, pass a carry on to those above them.
  for (unsigned line = 0; line < 20; ++line) {
    if ((mask >> line & 1) != 0) continue;
    const unsigned lowest = line;
    while (line < 20 && (mask >> line & 1) == 0) ++line;
    const bool carried = (next.value & ((1u << lowest) - 1)) == 0;
    if (carried && a == next.plus32(1u << line).masked32(mask)) return true;
  }
  return false;
}

}  // namespace citcat
