#pragma once
// Values that a processor read from ports.

#include <cstdint>

#include "events/packed_events.h"
#include "events/position.h"

namespace citcat {

/// A value that the processor read from a port, or the part of it that was one transfer. The replay
/// consumes them in order and joins the transfers of one access (events/port_transfers.h).
struct IoRead {
  Position position;
  std::uint64_t transaction = 0;
  std::uint32_t value = 0;
  std::uint16_t port = 0;
  std::uint8_t size = 1;  ///< bytes, 1 to 4
  bool position_known = false;
  bool operator==(const IoRead&) const = default;
};

/// Packs an event into 3 to 6 bytes if a program polls a port; at most 32.
struct IoReadCodec {
  using Event = IoRead;
  static void pack(const IoRead& read, const IoRead& before, PackedWriter& out);
  static void unpack(PackedReader& in, IoRead& read);
};

using IoReads = PackedEvents<IoReadCodec>;

}  // namespace citcat
