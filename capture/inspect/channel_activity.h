#pragma once
// How the channels of a capture move from clock to clock: this distinguishes channels whose names
// say nothing.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/captures/samples.h"

namespace citcat {

/// One bit a clock, oldest first in the lowest bit of the first word.
using ClockBits = std::vector<std::uint64_t>;

/// The beginning of a capture. Memory: about twice the samples that it keeps.
class ChannelActivity {
 public:
  /// Reads up to `bytes` of samples, by default the first 16 MiB.
  explicit ChannelActivity(SampleSource& source, std::size_t bytes = std::size_t{1} << 24);

  const SampleInfo& info() const { return info_; }
  std::size_t channels() const { return info_.channels.size(); }
  /// What was read, for decoders to try a map on.
  const std::vector<SampleBlock>& blocks() const { return blocks_; }

  /// How often the level of each channel changes from one sample to the next.
  const std::vector<std::uint64_t>& changes() const { return changes_; }

  /// Takes a channel for the clock: from here on, clocks are its high phases, or the low ones.
  void set_clock(std::size_t channel, bool low_phases = false);
  std::size_t clocks() const { return clocks_; }
  /// Levels of a channel in the first sample of each phase.
  const ClockBits& at_begin(std::size_t channel) const { return begin_[channel]; }
  /// The same in the last sample of the phase.
  const ClockBits& at_end(std::size_t channel) const { return end_[channel]; }
  /// The same in the last sample before the phase.
  const ClockBits& before(std::size_t channel) const { return before_[channel]; }

 private:
  bool level(const std::uint8_t* sample, std::size_t channel) const {
    return ((sample[channel / 8] >> (channel % 8)) & 1) != 0;
  }
  void count_changes();
  void add_clock(const std::uint8_t* before, const std::uint8_t* first, const std::uint8_t* last);

  struct Kept {
    std::vector<std::uint8_t> bytes;
    std::vector<std::uint64_t> numbers;
  };

  SampleInfo info_;
  std::vector<Kept> kept_;
  std::vector<SampleBlock> blocks_;  ///< into kept_
  std::vector<std::uint64_t> changes_;
  std::size_t clocks_ = 0;
  std::vector<ClockBits> before_, begin_, end_;  ///< by channel
};

/// Bit `clock` of `bits`.
inline bool at_clock(const ClockBits& bits, std::size_t clock) {
  return ((bits[clock / 64] >> (clock % 64)) & 1) != 0;
}

}  // namespace citcat
