#pragma once
// Finds address lines by how they count: code is fetched in order of addresses, so that a line
// changes when all below it wrap from 1 to 0.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "capture/inspect/channel_activity.h"
#include "capture/inspect/unnamed_cycle.h"

namespace citcat {

class CountingLines {
 public:
  /// Finds at most `most` lines among the channels. `other_levels`: at the clock of an address,
  /// some of the channels show anything, as data lines do that do not share pins with addresses.
  CountingLines(const ChannelActivity& activity, const std::vector<UnnamedCycle>& cycles,
                const std::vector<std::size_t>& channels, std::size_t most, bool other_levels);

  /// The lowest line first.
  const std::vector<std::size_t>& chain() const { return chain_; }
  /// Fetches after which the next one goes on without a wrap of the whole chain; and how often a
  /// channel changes there, which lines above the chain do not.
  std::size_t steps() const;
  std::size_t odd_steps(std::size_t channel) const;
  /// Whether a channel hardly ever changes there.
  bool is_quiet(std::size_t channel) const { return odd_steps(channel) * 50 <= steps(); }

 private:
  /// What two fetches that follow each other say of the next line.
  enum class Step : std::uint8_t { broken, stays, wraps };
  struct Pair {
    std::size_t from, to;  ///< clocks
    Step step = Step::wraps;
  };

  bool changes(std::size_t channel, const Pair& pair) const;
  std::vector<Pair> pairs(bool distinct) const;
  std::optional<double> fit(std::size_t channel, const std::vector<Pair>& pairs) const;
  void advance(std::size_t channel, std::vector<Pair>& pairs) const;
  std::vector<std::size_t> chain_from(std::size_t first, std::vector<Pair>& pairs) const;
  void find(const std::vector<Pair>& pairs);

  const ChannelActivity& activity_;
  std::vector<std::size_t> channels_;
  std::size_t most_;
  std::vector<std::size_t> fetches_;  ///< clocks of their addresses
  std::vector<std::size_t> chain_;
  std::vector<Pair> steps_;  ///< fetches, as far as chain_ says
};

}  // namespace citcat
