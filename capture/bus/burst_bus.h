#pragma once
// Facts the i486 and the Pentium buses share.

#include <cstdint>
#include <optional>

#include "capture/bus/bus_output.h"

namespace citcat {

/// What a special cycle means, by its active byte enables (bit i: BE<i># low; AMD-K5 TRM, table
/// 5-23). Halt shares its code with stop grant, which has address 10h.
struct SpecialCycle {
  unsigned enables;
  BusOp op;
  std::uint8_t detail;  ///< see BusOp::flush
};
constexpr SpecialCycle kSpecialCycles[] = {
    {1u << 0, BusOp::shutdown, 0},
    {1u << 1, BusOp::flush, 1},
    {1u << 2, BusOp::halt, 0},
    {1u << 3, BusOp::flush, 2},
};
constexpr std::uint32_t kStopGrantLine = 0x10;  ///< of the address: A4

/// The special cycle, or nullopt for one that no program causes (stop grant, flush acknowledge).
inline std::optional<SpecialCycle> special_cycle(unsigned enables, PhysAddr address) {
  if ((address.value & kStopGrantLine) != 0) return std::nullopt;
  for (const SpecialCycle& cycle : kSpecialCycles)
    if (cycle.enables == enables) return cycle;
  return std::nullopt;
}

/// Address of item `index` of a burst of `item_bytes` each: lines are filled in interleaved order,
/// 0 4 8 C, 4 0 C 8, 8 C 0 4, C 8 4 0 (Intel patent US5255378; Pentium the same with 8 bytes).
constexpr PhysAddr burst_address(PhysAddr start, unsigned index, unsigned item_bytes) {
  return PhysAddr{start.value ^ index * item_bytes};
}

}  // namespace citcat
