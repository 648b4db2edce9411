#pragma once
// Memory that changed without the processor writing it.

#include <cstdint>
#include <vector>

#include "events/address.h"
#include "events/bus_anchor.h"
#include "events/packed_events.h"
#include "events/position.h"

namespace citcat {

/// Memory that changed without the processor writing it: DMA, or a memory-mapped device. Seen when
/// a read returned something else than the last known value. The window is (last access to these
/// bytes, the read that showed it]; the canonical position is just before that read.
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

/// Besides its data, of a device that is polled or a buffer that is read on and on 7 to 14 bytes;
/// at most 126.
struct ExternalWriteCodec {
  using Event = ExternalWrite;
  static void pack(const ExternalWrite& write, const ExternalWrite& before, PackedWriter& out);
  static void unpack(PackedReader& in, ExternalWrite& write);
};

using ExternalWrites = PackedEvents<ExternalWriteCodec>;

}  // namespace citcat
