#include "capture/inspect/cycle_rows.h"

#include <algorithm>
#include <array>
#include <bit>

namespace citcat {
namespace {

constexpr std::size_t kMostRowChannels = 64;

}  // namespace

CycleRows::CycleRows(const ChannelActivity& activity, const std::vector<UnnamedCycle>& cycles,
                     const std::vector<std::size_t>& taken) {
  for (std::size_t c = 0; c < activity.channels() && channels_.size() < kMostRowChannels; ++c)
    if (activity.changes()[c] > 0 && std::find(taken.begin(), taken.end(), c) == taken.end())
      channels_.push_back(c);
  for (const UnnamedCycle& cycle : cycles) {
    std::uint64_t begin = 0, middle = 0;
    for (std::size_t i = 0; i < channels_.size(); ++i) {
      if (at_clock(activity.at_begin(channels_[i]), cycle.begin)) begin |= std::uint64_t{1} << i;
      const std::size_t clock = std::max(cycle.begin, cycle.end - 1);
      if (at_clock(activity.at_begin(channels_[i]), clock)) middle |= std::uint64_t{1} << i;
    }
    begin_.push_back(begin);
    middle_.push_back(middle);
  }
}

long CycleRows::looks_fetched(const std::vector<std::size_t>& chosen) const {
  std::array<long, kMostRowChannels> changes{};
  for (std::size_t i = 1; i < chosen.size(); ++i)
    for (std::uint64_t changed = begin_[chosen[i]] ^ begin_[chosen[i - 1]]; changed != 0;
         changed &= changed - 1)
      ++changes[static_cast<std::size_t>(std::countr_zero(changed))];
  // Any channel changes half of the time, by chance.
  const long most = *std::max_element(changes.begin(), changes.end());
  return most - 3 * (static_cast<long>(chosen.size()) - most);
}

}  // namespace citcat
