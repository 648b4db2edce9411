#pragma once
// The two lines that say which bytes of a two-byte bus a cycle uses: A0 or BLE#, and BHE#.

#include <cstddef>
#include <optional>
#include <vector>

#include "capture/inspect/channel_activity.h"
#include "capture/inspect/unnamed_cycle.h"

namespace citcat {

struct ByteEnables {
  std::size_t low = 0, high = 0;  ///< channels
  bool sure = false;              ///< which of them is which
};

/// Never are both high in a cycle that moves bytes, and the high one is low in code fetches (8086
/// data sheet, table "BHE and A0"; 80286 and 386SX data sheets, the same). Bytes of a string, and
/// words at odd addresses, go on from one cycle to the next: `chain` are the address lines from the
/// second one on. Nothing where no two channels are like that.
std::optional<ByteEnables> find_byte_enables(const ChannelActivity& activity,
                                             const std::vector<UnnamedCycle>& cycles,
                                             const std::vector<std::size_t>& channels,
                                             const std::vector<std::size_t>& chain);

}  // namespace citcat
