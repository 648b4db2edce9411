#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>

#include "capture/bus/bus_decoder.h"

namespace citcat {

/// Counts what a Pentium's execution tracing pins report: IU and IV are high for one clock when an
/// instruction has completed in the U or the V pipe, IBT when a branch was taken (Pentium Processor
/// Family Developer's Manual, vol. 1, pin descriptions; from memory of the manual, to be corrected
/// here). IU and IV count instructions, where both are probed; else IBT counts branches. Parts
/// whose core runs faster than the bus do not have these pins.
class PulseCounter {
 public:
  static constexpr std::array<const char*, 3> kPins = {"IU", "IV", "IBT"};

  PulseCounter() = default;
  explicit PulseCounter(const PinSet& pins) {
    if (pins.has("IU") && pins.has("IV")) {
      unit_ = CountUnit::completions;
      pulses_ = pins.gather({"IU", "IV"});
    } else if (pins.has("IBT")) {
      unit_ = CountUnit::branch_pulses;
      pulses_ = pins.gather({"IBT"});
    }
  }

  bool counts() const { return unit_ != CountUnit::instructions; }
  /// The unit that is counted; instructions when nothing is.
  CountUnit unit() const { return unit_; }
  /// Call with the pin levels at every clock.
  void clock(const std::uint8_t* sample) {
    value_ += static_cast<unsigned>(std::popcount(pulses_(sample)));
  }
  std::uint64_t value() const { return value_; }
  /// The value, where it is still `before`; nothing, and noted, where it is not.
  std::optional<std::uint64_t> between(std::uint64_t before) {
    if (value_ == before) return value_;
    ++uncertain_;
    return std::nullopt;
  }
  std::uint64_t uncertain() const { return uncertain_; }

 private:
  CountUnit unit_ = CountUnit::instructions;
  PinGather pulses_;
  std::uint64_t value_ = 0, uncertain_ = 0;
};

}  // namespace citcat
