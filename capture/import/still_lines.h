#pragma once
// Pins whose channels never move at the beginning of a capture, though the machine runs: a probe
// that fell off, or a line that is held at a level.

#include <string>
#include <vector>

#include "capture/bus/bus_decoder.h"
#include "capture/bus/channel_map.h"

namespace citcat {

class StillLines {
 public:
  explicit StillLines(const SampleInfo& samples)
      : unit_(samples.unit_bytes), high_(unit_), low_(unit_) {}

  void add(const SampleBlock& block);

  /// A line for people about each pin that had to move and did not: data lines, lines that begin or
  /// end bus cycles, those of the queue's status, and address lines below one that moves. Nothing
  /// for a capture that is too short to tell. `failed`: it does not decode, and also those are
  /// named that a program need not move.
  std::vector<std::string> complaints(const BusMatch& match, bool failed = false) const;

 private:
  enum class Level : std::uint8_t { moves, low, high };
  Level level_of(const PinMatch& pin) const;

  std::size_t unit_, samples_ = 0;
  std::vector<std::uint8_t> high_, low_;  ///< bits that were ever so
};

}  // namespace citcat
