#pragma once
// A bus cycle on channels that have no names yet.

#include <cstddef>

namespace citcat {

/// S2, S1, S0 as bits 2, 1, 0 (8088 data sheet, table "Status"); of other buses, what they would
/// be.
enum CycleStatus : unsigned {
  kAcknowledge = 0,
  kPortRead = 1,
  kPortWrite = 2,
  kHalt = 3,
  kFetch = 4,
  kRead = 5,
  kWrite = 6,
};

/// By the clocks of a ChannelActivity.
struct UnnamedCycle {
  std::size_t begin = 0;  ///< the address is on the bus
  std::size_t end = 0;    ///< the data is taken at its end
  unsigned status = kAcknowledge;

  bool is_fetch() const { return status == kFetch; }
  bool is_read() const { return status == kRead; }
  bool is_memory() const { return status >= kFetch; }
  bool is_acknowledge() const { return status == kAcknowledge; }
  /// It moves bytes between the processor and an address.
  bool is_transfer() const { return status != kAcknowledge && status != kHalt; }
};

}  // namespace citcat
