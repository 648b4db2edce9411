#pragma once
// The place of an event among the transactions that the replay reproduces in order.

#include <cstdint>

namespace citcat {

/// The place of an event among the transactions that the replay reproduces in order, for captures
/// without a counter. Each field counts items before the event.
struct BusAnchor {
  std::uint64_t writes = 0;      ///< bytes of captured memory writes (not write-backs)
  std::uint64_t io = 0;          ///< bytes read from and written to ports; see PortUnit
  std::uint64_t interrupts = 0;  ///< interrupt acknowledges, and markers of those without
  std::uint64_t reads = 0;       ///< data-read transactions
  bool operator==(const BusAnchor&) const = default;
};

}  // namespace citcat
