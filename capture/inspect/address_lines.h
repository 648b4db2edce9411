#pragma once
// Which channels are the address lines of an 8088, by how they count: code is fetched in order, so
// that a line changes when all below it wrap from 1 to 0; above A15 the pins show segment status
// from T2 on; and far pointers say where code is fetched next.

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "capture/inspect/bus_cycles_8088.h"
#include "capture/inspect/channel_activity.h"

namespace citcat {

struct AddressMatch {
  struct Line {
    std::size_t channel = 0;
    std::string reason;
  };
  std::array<std::optional<Line>, 20> lines;  ///< AD0-AD7, A8-A19
  std::size_t in_order = 0;                   ///< so many of the lowest were seen counting
  std::vector<std::size_t> by_order;          ///< bits whose lines nothing distinguishes
  std::vector<std::string> doubts;
};

/// `channels` are those that may be address lines.
AddressMatch find_address_lines(const ChannelActivity& activity,
                                const std::vector<UnnamedCycle>& cycles,
                                const std::vector<std::size_t>& channels);

}  // namespace citcat
