#pragma once
// Two pins whose channels are exchanged, or one that is inverted: found by decoding the beginning
// of a capture with any two exchanged or one inverted, and checking how well the code fetches
// follow one another.

#include <cstdint>
#include <string>
#include <vector>

#include "capture/bus/bus_decoder.h"
#include "capture/bus/channel_map.h"
#include "capture/inspect/channel_activity.h"

namespace citcat {

struct ExchangedLines {
  std::string first, second;  ///< pins; the same: it is inverted
  /// Code fetches that go on or follow a jump: as the channels are, and exchanged.
  std::uint64_t before = 0, after = 0;
  std::uint64_t fetches = 0;  ///< all, exchanged

  std::string text() const;
};

/// The pairs after whose exchange more fetches are in order, one after the other; `assignment` has
/// them exchanged afterwards. Lines that never move are left out. What makes no difference to the
/// code that is fetched is not found.
std::vector<ExchangedLines> find_exchanged_lines(const ChannelActivity& activity,
                                                 const BusMatch& match, PinAssignment& assignment);

}  // namespace citcat
