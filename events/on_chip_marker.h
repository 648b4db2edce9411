#pragma once
// Interrupts of devices on the processor's chip (a local APIC, the timers of a 386EX) are
// acknowledged off the bus. The bus does show something that their handler or their delivery always
// does: the end-of-interrupt command, a store to a known place, the read of their entry in the
// interrupt table.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "events/bus_transaction.h"

namespace citcat {

/// Each transaction that it names follows one interrupt with this vector.
struct OnChipMarker {
  enum class Kind : std::uint8_t { io_write, memory_write, memory_read };

  std::uint8_t vector = 0;
  Kind kind = Kind::io_write;
  PhysAddr address;                                ///< physical address, or port
  std::optional<std::vector<std::uint8_t>> bytes;  ///< all that is there; nothing: whatever it is

  bool shown_by(const BusTransaction& t) const;
};

/// `VECTOR=io-write:PORT[:VALUE]`, `VECTOR=mem-write:ADDR[:VALUE]` or
/// `VECTOR=mem-read:ADDR[:VALUE]`, all numbers hexadecimal, with 0x or without. A value has two
/// digits for each byte, the highest first. Throws UsageError.
OnChipMarker parse_on_chip_marker(std::string_view text);
/// The same text again.
std::string on_chip_marker_text(const OnChipMarker& marker);

}  // namespace citcat
