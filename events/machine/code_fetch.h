#pragma once
// How the fetches of an 8086 follow one another.

#include <cstdint>

#include "events/machine/address.h"

namespace citcat {

/// Whether a fetch from `a` goes on where the last one ended, at `next`. Both have the address bits
/// of `mask` alone. IP wraps at 64 KiB within the code segment.
inline bool goes_on_fetching(PhysAddr next, PhysAddr a, std::uint32_t mask) {
  if (a == next || a == next.plus32(0u - 0x10000u).masked32(mask)) return true;
  // Lines that were not captured, all of them high, pass a carry on to those above them.
  PhysAddr carried = next;
  unsigned known_from = 0;
  for (unsigned line = 0; line < 20; ++line) {
    if ((mask >> line & 1) != 0) continue;
    const unsigned lowest = line;
    while (line < 20 && (mask >> line & 1) == 0) ++line;
    const bool reached = (carried.value & ((1u << lowest) - (1u << known_from))) == 0;
    if (!reached) return false;
    carried = carried.plus32(1u << line).masked32(mask);
    if (a == carried) return true;
    known_from = line;
  }
  return false;
}

}  // namespace citcat
