#pragma once
// The bus cycles of an 8088 in maximum mode as channels show them that have no names yet: found by
// the three status lines, which go from high to a code and back together.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "capture/inspect/channel_activity.h"

namespace citcat {

/// S0, S1, S2.
using StatusLines = std::array<std::size_t, 3>;

/// One cycle, by the clocks of a ChannelActivity.
struct UnnamedCycle {
  std::size_t begin = 0;  ///< T1: the address is on the bus
  std::size_t end = 0;    ///< the first passive clock: the data is taken at its end
  unsigned status = 0;    ///< S2, S1, S0 as bits 2, 1, 0 (8088 data sheet, table "Status")

  bool is_fetch() const { return status == 4; }
  bool is_read() const { return status == 5; }
  bool is_memory() const { return status >= 4; }
  bool is_acknowledge() const { return status == 0; }
};

/// The channels that move as S0-S2 do, in this order, or nothing. `clock` is no candidate. Which of
/// S0 and S1 is which is decided by what follows interrupt acknowledges, else by reads being more
/// than writes: `sure` is false then.
struct StatusMatch {
  StatusLines lines{};
  bool sure = false;
};
std::optional<StatusMatch> find_status_lines(const ChannelActivity& activity, std::size_t clock);

/// All whole cycles, in order.
std::vector<UnnamedCycle> cycles_of(const ChannelActivity& activity, const StatusLines& status);

}  // namespace citcat
