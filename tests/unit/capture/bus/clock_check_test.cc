#include "capture/bus/clock_check.h"

#include <gtest/gtest.h>

#include <cmath>

namespace citcat {
namespace {

/// The pins of an 8088 that only fetches, a byte every four clocks, sampled `rate` times a clock.
class Fetching {
 public:
  explicit Fetching(double rate, double hz = 0) {
    for (const PinDescription& pin : bus_.pins()) {
      pins_.pins.push_back({static_cast<int>(info_.channels.size()), false});
      info_.channels.push_back(pin.name);
    }
    info_.unit_bytes = (info_.channels.size() + 7) / 8;
    info_.sample_rate_hz = hz;
    for (int i = 0; i < 4000; ++i) add(i / rate + 0.1);
  }
  std::string complaint() const {
    ClockCheck check(info_, {bus_, pins_});
    check.add({0, samples_, {}});
    return check.complaint().value_or("");
  }

 private:
  void add(double clock) {
    std::vector<std::uint8_t> sample(info_.unit_bytes);
    const auto set = [&](const char* name, bool level) {
      for (std::size_t i = 0; i < info_.channels.size(); ++i) {
        if (info_.channels[i] == name && level) {
          sample[i / 8] = static_cast<std::uint8_t>(sample[i / 8] | 1u << i % 8);
        }
      }
    };
    const int in_cycle = static_cast<int>(clock) % 4;
    const bool active = in_cycle < 2;
    set("CLK", clock - std::floor(clock) < 0.33);
    set("S0", !active);
    set("S1", !active);
    set("S2", true);
    samples_.insert(samples_.end(), sample.begin(), sample.end());
  }

  const BusDescription& bus_ = *find_bus("8088-max");
  PinAssignment pins_;
  SampleInfo info_;
  std::vector<std::uint8_t> samples_;
};

TEST(ClockCheck, IsContentWithTwoSamplesAClockAndMore) {
  for (const double rate : {3.1, 4.0, 5.0, 10.5, 21.0}) {
    EXPECT_EQ(Fetching(rate).complaint(), "") << rate;
  }
}

TEST(ClockCheck, FindsAClockThatAlternatesTooSlowlyForItsBusCycles) {
  for (const double rate : {1.7, 0.67, 0.8, 1.3}) {
    EXPECT_NE(Fetching(rate).complaint().find("CLK is sampled too slowly"), std::string::npos)
        << rate;
  }
}

TEST(ClockCheck, FindsAClockThatIsAlwaysSampledAtTheSamePlace) {
  EXPECT_NE(Fetching(1).complaint().find("CLK never changes while S0 does"), std::string::npos);
}

TEST(ClockCheck, SaysTheRateThatWouldDo) {
  // A clock of 4.77 MHz, 8 million samples a second.
  const std::string text = Fetching(8.0 / 4.77, 8e6).complaint();
  EXPECT_NE(text.find("at about 4.7"), std::string::npos) << text;
  EXPECT_NE(text.find(" MHz or more, so 12 MHz would do (the capture has 8 MHz)"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace citcat
