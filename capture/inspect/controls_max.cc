// Maximum mode: Intel 8086 data sheet, table "Status" and figure "System timing - maximum mode".

#include <algorithm>

#include "capture/inspect/bus_controls.h"
#include "capture/inspect/bus_cycles_8088.h"

namespace citcat {

std::vector<std::size_t> likely_clocks(const ChannelActivity& activity) {
  constexpr std::size_t kTried = 4;
  std::vector<std::size_t> channels;
  for (std::size_t c = 0; c < activity.channels(); ++c)
    if (activity.changes()[c] > 0) channels.push_back(c);
  std::stable_sort(channels.begin(), channels.end(), [&](std::size_t a, std::size_t b) {
    return activity.changes()[a] > activity.changes()[b];
  });
  if (channels.size() > kTried) channels.resize(kTried);
  return channels;
}

std::optional<ControlMatch> find_controls_max(ChannelActivity& activity) {
  for (const std::size_t clock : likely_clocks(activity)) {
    activity.set_clock(clock);
    const auto status = find_status_lines(activity, clock);
    if (!status) continue;
    ControlMatch match;
    match.pins.push_back({"CLK", clock, "changes all the time, and what others do follows it"});
    for (std::size_t n = 0; n < status->lines.size(); ++n)
      match.pins.push_back({"S" + std::to_string(n), status->lines[n],
                            "goes low and back with the others of S0-S2"});
    if (!status->sure)
      match.doubts.push_back(
          "no interrupt distinguishes S0 from S1: chosen so that there are more reads than writes");
    match.cycles = cycles_of(activity, status->lines);
    return match;
  }
  return std::nullopt;
}

}  // namespace citcat
