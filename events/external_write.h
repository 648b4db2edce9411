#pragma once
// Memory that changed without the processor writing it.

#include <cstdint>
#include <vector>

#include "events/bus_anchor.h"
#include "events/machine/address.h"
#include "events/packed_events.h"
#include "events/position.h"

namespace citcat {

/// A change of memory that the processor did not make: DMA, or a memory-mapped device. It shows
/// when a read returns another value than the last known one. It happened after the last access to
/// these bytes (`window_begin`) and before that read; its position is just before the read.
struct ExternalWrite {
  PhysAddr address;
  std::vector<std::uint8_t> data;
  bool position_known = false;
  Position position;
  BusAnchor anchor;               ///< of the read that showed it
  BusAnchor window_begin;         ///< of the last access that still showed the old value
  std::uint64_t transaction = 0;  ///< the read that showed it
  bool operator==(const ExternalWrite&) const = default;
};

/// Packs an event into its data and 7 to 14 bytes, if a device is polled or a buffer is read in
/// order; at most 126 bytes.
struct ExternalWriteCodec {
  using Event = ExternalWrite;
  static void pack(const ExternalWrite& write, const ExternalWrite& before, PackedWriter& out);
  static void unpack(PackedReader& in, ExternalWrite& write);
};

using ExternalWrites = PackedEvents<ExternalWriteCodec>;

}  // namespace citcat
