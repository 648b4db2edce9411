#pragma once
// The levels of many channels, one row per cycle, to try many ways of telling the cycles apart.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "capture/inspect/channel_activity.h"
#include "capture/inspect/unnamed_cycle.h"

namespace citcat {

class CycleRows {
 public:
  /// Has rows of the channels that change, at most 64 of them.
  CycleRows(const ChannelActivity& activity, const std::vector<UnnamedCycle>& cycles,
            const std::vector<std::size_t>& taken);

  std::size_t size() const { return begin_.size(); }
  const std::vector<std::size_t>& channels() const { return channels_; }
  /// Whether channels()[i] is high where the address of a cycle is; and in the middle of the cycle.
  bool at_begin(std::size_t cycle, std::size_t i) const { return (begin_[cycle] >> i & 1) != 0; }
  bool in_middle(std::size_t cycle, std::size_t i) const { return (middle_[cycle] >> i & 1) != 0; }

  /// How much the cycles in `chosen`, in order, look like code fetches: by the channel that changes
  /// most regularly from one to the next, as the lowest address line does.
  long looks_fetched(const std::vector<std::size_t>& chosen) const;

 private:
  std::vector<std::size_t> channels_;
  std::vector<std::uint64_t> begin_, middle_;
};

}  // namespace citcat
