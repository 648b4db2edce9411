#pragma once
// Checks that the clock was sampled often enough. If the rate is too low, the clock still seems to
// alternate, but at a wrong rate, and the levels in its periods make no sense.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capture/bus/bus_decoder.h"
#include "formats/captures/samples.h"

namespace citcat {

class ClockCheck {
 public:
  /// Both must outlive the object.
  ClockCheck(const SampleInfo& samples, const PinSet& pins);

  void add(const SampleBlock& block);
  /// What is wrong, and the rate that would do; nullopt where nothing is, or where no clock is
  /// needed.
  std::optional<std::string> complaint() const;

 private:
  /// A pin that changes once a clock at most.
  struct SlowPin {
    std::string name;
    PinLevel level;
    std::uint64_t changes = 0;
    bool high = false;
  };
  /// Where a bus cycle of an 8086 begins.
  struct Start {
    std::uint64_t sample = 0, period = 0;
  };

  void look_at(std::uint64_t number, const std::uint8_t* sample);
  bool is_cycles_too_short() const;
  double clocks_a_sample() const;
  std::string advice() const;

  const SampleInfo& samples_;
  bool has_clock_ = false;
  PinLevel clock_;
  std::vector<SlowPin> slow_;
  PinGather status_;
  bool has_status_ = false;
  bool any_ = false, high_ = false, active_ = false;
  std::uint64_t clock_changes_ = 0, periods_ = 0;
  std::vector<Start> starts_;
};

}  // namespace citcat
