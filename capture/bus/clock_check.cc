#include "capture/bus/clock_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace citcat {

namespace {

/// Clocks of the shortest bus cycle (Intel 8086 data sheet, "Bus Operation": at least four).
constexpr std::uint64_t kShortestCycle = 4;
/// Fewer changes or cycles tell nothing.
constexpr std::uint64_t kEnough = 64;
constexpr std::size_t kMostStarts = std::size_t{1} << 16;

/// Pins that the processor drives from its clock: each keeps its level for a clock at least.
constexpr const char* kDrivenByClock[] = {"S0", "S1", "S2", "QS0", "QS1", "ALE", "ADS"};

const PinChoice* find_pin(const PinSet& pins, const std::string& name) {
  const auto& all = pins.bus.pins();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == name && pins.assignment.pins.at(i).channel >= 0) {
      return &pins.assignment.pins[i];
    }
  }
  return nullptr;
}

/// The next rate at or above `hz` that analysers have.
double usual_rate(double hz) {
  constexpr std::array kRates = {1e6,  2e6,  4e6,  5e6,  8e6,   10e6,  12e6,  16e6,  20e6,
                                 24e6, 25e6, 40e6, 50e6, 100e6, 200e6, 250e6, 400e6, 500e6};
  const auto found = std::lower_bound(kRates.begin(), kRates.end(), hz);
  return found == kRates.end() ? hz : *found;
}

std::string megahertz(double hz) { return fmt::format("{:.3g} MHz", hz / 1e6); }

}  // namespace

ClockCheck::ClockCheck(const SampleInfo& samples, const PinSet& pins) : samples_(samples) {
  for (const char* name : {"CLK", "CLK2"}) {
    const PinChoice* const pin = find_pin(pins, name);
    if (pin == nullptr || pins.assignment.edge == ClockEdge::every) continue;
    clock_ = PinLevel(*pin);
    has_clock_ = true;
  }
  for (const char* name : kDrivenByClock) {
    if (const PinChoice* const pin = find_pin(pins, name)) slow_.push_back({name, PinLevel(*pin)});
  }
  has_status_ = find_pin(pins, "S0") && find_pin(pins, "S1") && find_pin(pins, "S2");
  if (has_status_) status_ = pins.gather("S", 0, 2);
}

void ClockCheck::add(const SampleBlock& block) {
  if (!has_clock_) return;
  const std::size_t unit = samples_.unit_bytes;
  for (std::size_t i = 0; (i + 1) * unit <= block.bytes.size(); ++i) {
    look_at(block.numbers.empty() ? block.first + i : block.numbers[i],
            block.bytes.data() + i * unit);
  }
}

void ClockCheck::look_at(std::uint64_t number, const std::uint8_t* sample) {
  constexpr std::uint64_t kPassive = 7;
  const bool high = clock_(sample);
  if (any_ && high != high_) {
    ++clock_changes_;
    if (high) ++periods_;
  }
  high_ = high;
  for (SlowPin& pin : slow_) {
    const bool level = pin.level(sample);
    if (any_ && level != pin.high) ++pin.changes;
    pin.high = level;
  }
  const bool active = has_status_ && status_(sample) != kPassive;
  if (any_ && active && !active_ && starts_.size() < kMostStarts)
    starts_.push_back({number, periods_});
  active_ = active;
  any_ = true;
}

/// Judges by at least four clocks, because a glitch makes single ones shorter.
bool ClockCheck::is_cycles_too_short() const {
  if (starts_.size() < kEnough) return false;
  std::size_t shorter = 0;
  for (std::size_t i = 1; i < starts_.size(); ++i) {
    if (starts_[i].period - starts_[i - 1].period + 1 < kShortestCycle) ++shorter;
  }
  return shorter > starts_.size() / 8;
}

/// At least, by the bus cycles that follow one another the fastest; 0 where there are too few.
double ClockCheck::clocks_a_sample() const {
  constexpr std::size_t kRun = 16;
  if (starts_.size() <= kRun) return 0;
  std::uint64_t shortest = ~std::uint64_t{0};
  for (std::size_t i = kRun; i < starts_.size(); ++i) {
    shortest = std::min(shortest, starts_[i].sample - starts_[i - kRun].sample);
  }
  return static_cast<double>(kShortestCycle * kRun) / static_cast<double>(shortest);
}

std::string ClockCheck::advice() const {
  std::string text = "sample at least twice, better four times, as fast as the clock runs";
  const double clock = clocks_a_sample() * samples_.sample_rate_hz;
  if (clock > 0) {
    text += fmt::format(
        ": bus cycles of four clocks say that it runs at about {} or more, so {} would do",
        megahertz(clock), megahertz(usual_rate(2.5 * clock)));
  } else if (clocks_a_sample() > 0) {
    text += fmt::format(
        ": bus cycles of four clocks say that it has about {:.2g} clocks a sample or more",
        clocks_a_sample());
  }
  if (samples_.sample_rate_hz > 0)
    text += fmt::format(" (the capture has {})", megahertz(samples_.sample_rate_hz));
  return text;
}

std::optional<std::string> ClockCheck::complaint() const {
  if (!has_clock_) return std::nullopt;
  const auto busiest =
      std::max_element(slow_.begin(), slow_.end(),
                       [](const SlowPin& a, const SlowPin& b) { return a.changes < b.changes; });
  if (busiest == slow_.end() || busiest->changes < kEnough) return std::nullopt;
  if (clock_changes_ == 0) {
    return "CLK never changes while " + busiest->name +
           " does: its probe is off, or every sample is taken at the same place of a clock. If CLK "
           "is the "
           "analyser's sample clock, a channel map says so (\"clock_edge\": \"every\"); else " +
           advice();
  }
  // One change in two more than there are clocks is what a glitch may do.
  const bool too_often = busiest->changes > clock_changes_ / 2 + clock_changes_ / 50 + 2;
  if (!too_often && !is_cycles_too_short()) return std::nullopt;
  return "CLK is sampled too slowly, " +
         (too_often ? busiest->name + " changes more often than once a clock: "
                    : std::string("bus cycles are shorter than four clocks: ")) +
         advice();
}

}  // namespace citcat
