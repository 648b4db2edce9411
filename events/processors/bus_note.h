#pragma once
// Bus actions of one of several processors that a replay of that processor alone does not need.

#include <cstdint>

#include "events/machine/address.h"

namespace citcat {

struct BusNote {
  enum class Kind : std::uint8_t {
    invalidate = 0,    ///< a shared line becomes the processor's own; all other copies vanish
    message = 1,       ///< on the APIC bus: `data` is vector, mode, destination, details
    device_write = 2,  ///< by another bus master than a processor: `size` bytes of `data`
  };
  Kind kind = Kind::invalidate;
  std::uint8_t processor = 0;  ///< of a message: kNoProcessor where the I/O APIC sends it
  bool locked = false;
  /// Its count of instructions does not fit those of its processor's other records.
  bool is_lone = false;
  std::uint8_t size = 0;
  std::uint64_t clock = 0;  ///< says among which transactions it is
  PhysAddr address;
  std::uint64_t data = 0;
  bool operator==(const BusNote&) const = default;
};

inline constexpr std::uint8_t kNoProcessor = 15;
/// A number of 4 bits, whose last two values are for other bus masters.
inline constexpr unsigned kMostProcessors = 14;

}  // namespace citcat
