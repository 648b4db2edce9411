#pragma once
// Finds the control lines of a bus among channels that have no names, and the cycles that they
// show: one function for each kind of bus.

#include <optional>
#include <string>
#include <vector>

#include "capture/inspect/channel_activity.h"
#include "capture/inspect/unnamed_cycle.h"

namespace citcat {

struct ControlMatch {
  struct Pin {
    std::string pin;  ///< as the description of the bus names it
    std::size_t channel = 0;
    std::string reason;
    bool inverted = false;
  };
  std::vector<Pin> pins;
  std::vector<UnnamedCycle> cycles;
  std::vector<std::string> doubts;
};

/// Channels for the clock: those that change most, the busiest first.
std::vector<std::size_t> likely_clocks(const ChannelActivity& activity);

// Each leaves the clock of the activity as it needs it, and says nothing where the channels show no
// such bus.

/// S0-S2 of an 8088, 8086, 80188 or 80186, V20 or V30 in maximum mode.
std::optional<ControlMatch> find_controls_max(ChannelActivity& activity);
/// ALE, RD#, WR#, INTA# and IO/M#, or M/IO# on a bus of two bytes.
std::optional<ControlMatch> find_controls_8088_min(ChannelActivity& activity);
std::optional<ControlMatch> find_controls_8086_min(ChannelActivity& activity);
/// S0#, S1#, M/IO#, COD/INTA# and READY#.
std::optional<ControlMatch> find_controls_286(ChannelActivity& activity);
/// ADS#, W/R#, D/C#, M/IO# and READY#.
std::optional<ControlMatch> find_controls_386sx(ChannelActivity& activity);

}  // namespace citcat
