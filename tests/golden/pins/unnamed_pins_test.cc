// Channels of generated pins are matched by how they move: of each processor up to the 386SX, with
// the channels in any order and without names. What the proposal does not doubt is right.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "capture/inspect/activity_match.h"
#include "formats/io/error.h"
#include "golden/pins/pin_drawing.h"
#include "golden/pins/pin_run.h"

namespace citcat::testing {
namespace {

/// The pins of a run, shuffled.
class ShuffledPins final : public SampleSource {
 public:
  ShuffledPins(const PinCase& pins, unsigned seed) {
    const ModelRun run(pins, seed);
    test::Random random(seed);
    const auto wave = draw_pins(pins, run.unit, random);
    const test::Samples drawn = samples_of(*wave, [](const std::string&) { return false; });
    std::vector<std::size_t> from(drawn.names.size());
    std::iota(from.begin(), from.end(), std::size_t{0});
    std::shuffle(from.begin(), from.end(), random);
    shuffled_.unit = drawn.unit;
    shuffled_.bytes.resize(drawn.bytes.size());
    for (std::size_t c = 0; c < from.size(); ++c) {
      std::string name = drawn.names[from[c]];
      std::erase_if(name, [](char letter) { return letter == '#' || letter == '/'; });
      truth.push_back(name);
      info_.channels.push_back("D" + std::to_string(c));
      for (std::size_t i = 0; i < drawn.count(); ++i)
        if (drawn.level(i, from[c])) shuffled_.set(i, c, true);
    }
    info_.name = "shuffled";
    info_.unit_bytes = shuffled_.unit;
  }

  const SampleInfo& info() const override { return info_; }
  bool next(SampleBlock& out) override {
    if (read_) return false;
    out = {0, shuffled_.bytes, {}};
    read_ = true;
    return true;
  }

  std::vector<std::string> truth;  ///< the pin of each channel

 private:
  test::Samples shuffled_;
  SampleInfo info_;
  bool read_ = false;
};

bool is_doubted(const ActivityMatch& match, const std::string& pin) {
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  return std::any_of(match.doubts.begin(), match.doubts.end(), [&](std::string doubt) {
    std::erase_if(doubt, [](char letter) { return letter == '#' || letter == '/'; });
    for (std::size_t at = doubt.find(pin); at != std::string::npos; at = doubt.find(pin, at + 1)) {
      const std::size_t end = at + pin.size();
      if ((at == 0 || !is_letter(doubt[at - 1])) && (end == doubt.size() || !is_letter(doubt[end])))
        return true;
    }
    return false;
  });
}

void expect_right(const ActivityMatch& match, const ShuffledPins& pins) {
  for (const ActivityMatch::Pin& pin : match.pins)
    if (!is_doubted(match, pin.pin)) {
      EXPECT_EQ(pins.truth[pin.channel], pin.pin) << pin.reason;
    }
}

struct MatchCase {
  PinCase pins;
  unsigned seed;
  const char* bus;
  std::size_t found;  ///< pins at least
  bool by_cpu = false;
};

class GeneratedMatch : public ::testing::TestWithParam<MatchCase> {};

TEST_P(GeneratedMatch, FindsThePinsInAnyOrder) {
  const MatchCase& c = GetParam();
  PinCase pins = c.pins;
  pins.is_long = true;
  pins.has_waits = c.seed % 2 != 0;
  ShuffledPins samples(pins, c.seed);
  const ActivityMatch match = match_by_activity(
      samples, c.by_cpu ? parse_cpu_model(c.pins.cpu).value() : CpuModel::unknown);
  EXPECT_EQ(match.bus, c.bus);
  EXPECT_GE(match.pins.size(), c.found);
  expect_right(match, samples);
}

// AD or A and D as far as they move, and control; INTR is not high at both acknowledges here.
INSTANTIATE_TEST_SUITE_P(
    Processors, GeneratedMatch,
    ::testing::Values(MatchCase{{"8088", PinForm::status}, 1, "8088-max", 26},
                      MatchCase{{"8086", PinForm::status}, 1, "8086-max", 27},
                      MatchCase{{"80186", PinForm::status}, 2, "8086-max", 27, true},
                      MatchCase{{"v30", PinForm::strobes}, 3, "8086-min", 28},
                      MatchCase{{"8088", PinForm::strobes}, 2, "8088-min", 28},
                      MatchCase{{"286", PinForm::bus_286}, 5, "80286", 43, true},
                      MatchCase{{"386", PinForm::bus_386sx}, 4, "386sx", 43, true}),
    [](const auto& test) {
      return std::string("i") + test.param.pins.cpu + "_" + std::to_string(test.index);
    });

/// Some two hundred instructions show little, and nothing wrong is said.
TEST(GeneratedPins, ClaimsNothingThatAShortCaptureDoesNotShow) {
  for (const PinForm form : {PinForm::status, PinForm::strobes}) {
    for (const unsigned seed : {1u, 2u}) {
      ShuffledPins samples(PinCase{"8088", form}, seed);
      try {
        expect_right(match_by_activity(samples, CpuModel::i8088), samples);
      } catch (const FormatError& error) {
        EXPECT_NE(std::string(error.what()).find("a longer capture may show more"),
                  std::string::npos)
            << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace citcat::testing
