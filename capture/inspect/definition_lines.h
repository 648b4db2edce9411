#pragma once
// Finds W/R# and M/IO# among channels without names, from what memory holds and where ports are.

#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "capture/inspect/channel_activity.h"
#include "capture/inspect/counting_lines.h"
#include "capture/inspect/unnamed_cycle.h"

namespace citcat {

class DefinitionLines {
 public:
  /// Which cycles are fetches, interrupt acknowledges and halts is known by then.
  DefinitionLines(const ChannelActivity& activity, const std::vector<UnnamedCycle>& cycles,
                  const std::vector<std::size_t>& channels);

  /// The channel that is low in fetches, and high where a word of memory is another one than
  /// before.
  std::optional<std::size_t> write() const;
  /// The channel that is high in fetches and seldom low: where it is, for ports and acknowledges,
  /// the address lines above A15 are low as well, so that none of them is low less often.
  std::optional<std::size_t> memory() const;
  /// Whether M/IO# is known from the address lines by more than that.
  bool is_told_by_acknowledges() const { return acknowledges_ != 0; }

  /// Marks the cycles of interrupt acknowledges among what looks like fetches: at addresses 4 and 0
  /// (386SX data sheet, "Interrupt acknowledge cycles").
  static void find_acknowledges(const ChannelActivity& activity, std::vector<UnnamedCycle>& cycles,
                                const std::vector<std::size_t>& channels);

 private:
  bool level(std::size_t channel, const UnnamedCycle& cycle) const {
    return at_clock(activity_.at_begin(channel), cycle.begin);
  }
  std::size_t highs(std::size_t channel, bool in_fetches) const;
  std::size_t weight_as_write(std::size_t channel) const;

  const ChannelActivity& activity_;
  const std::vector<UnnamedCycle>& cycles_;
  CountingLines counting_;
  std::vector<std::size_t> quiet_;  ///< channels that do not change from fetch to fetch
  std::vector<std::size_t> data_;   ///< the others
  std::set<std::size_t> enables_;   ///< A0 or BLE#, and BHE#
  std::size_t fetches_ = 0, acknowledges_ = 0;
};

}  // namespace citcat
