#pragma once
// The bus cycles of an 8088 or 8086 in maximum mode, or an 80186 or 80188, on channels that have no
// names yet: found by the three status lines, which go from high to a code and back together.

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "capture/inspect/channel_activity.h"
#include "capture/inspect/unnamed_cycle.h"

namespace citcat {

/// S0, S1, S2.
using StatusLines = std::array<std::size_t, 3>;

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
