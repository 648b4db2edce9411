// Channels are matched by how they move: those of a capture of a real machine, whose names are
// known, in any order and with names that say nothing.

#include "capture/inspect/activity_match.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "capture/import/sample_formats.h"
#include "formats/io/error.h"
#include "tests/unit/capture/sample_writers.h"
#include "tests/unit/capture/shared_data.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

class ActivityMatching : public test::TemporaryFolder,
                         public testing::WithParamInterface<unsigned> {
 protected:
  /// A capture of the IBM 5150 with its channels in another order, named D0, D1, ...; `truth_` is
  /// where the channel of each pin went. `pins`: those that are kept; all, if there are none.
  std::string shuffled(unsigned seed, const std::string& capture = kSample,
                       const std::set<std::string>& pins = {}) {
    constexpr std::size_t kSamples = 200000;
    const test::Samples real = test::read_samples(capture, kSamples);
    std::vector<std::size_t> from;
    for (std::size_t c = 0; c < real.names.size(); ++c)
      if (pins.empty() || pins.count(real.names[c]) != 0) from.push_back(c);
    std::shuffle(from.begin(), from.end(), std::mt19937_64(seed));
    test::Samples other = real;
    other.names.clear();
    other.unit = (from.size() + 7) / 8;
    other.bytes.assign(real.count() * other.unit, 0);
    for (std::size_t c = 0; c < from.size(); ++c) {
      truth_[real.names[from[c]]] = c;
      other.names.push_back("D" + std::to_string(c));
      for (std::size_t i = 0; i < real.count(); ++i) other.set(i, c, real.level(i, from[c]));
    }
    test::write_sigrok(other, path("shuffled.sr"));
    return path("shuffled.sr");
  }

  static constexpr const char* kSample = CITCAT_SOURCE_DIR "/samples/ibm5150/area5150.sr";
  std::map<std::string, std::size_t> truth_;
};

TEST_P(ActivityMatching, FindsThePinsOfARealMachineInAnyOrder) {
  const auto samples = open_samples("sigrok", {shuffled(GetParam())});
  const ActivityMatch match = match_by_activity(*samples);
  EXPECT_EQ(match.bus, "8088-max");
  // A19 was not probed. Nothing in this capture tells A12 from A14 and A13 from A15.
  EXPECT_EQ(match.missing, std::vector<std::string>{"A19"});
  ASSERT_EQ(match.doubts.size(), 1u);
  EXPECT_EQ(match.doubts[0].rfind("A12, A13, A14, A15: ", 0), 0u) << match.doubts[0];
  std::vector<std::size_t> in_doubt, in_doubt_truly;
  std::size_t certain = 0;
  for (const ActivityMatch::Pin& pin : match.pins) {
    if (match.doubts[0].find(pin.pin + ",") == std::string::npos &&
        match.doubts[0].find(pin.pin + ":") == std::string::npos) {
      EXPECT_EQ(pin.channel, truth_.at(pin.pin)) << pin.pin << ": " << pin.reason;
      ++certain;
    } else {
      in_doubt.push_back(pin.channel);
      in_doubt_truly.push_back(truth_.at(pin.pin));
    }
  }
  // AD0-AD7, A8-A11, A16-A18, S0-S2, CLK, QS0, QS1, INTR.
  EXPECT_EQ(certain, 22u);
  std::sort(in_doubt.begin(), in_doubt.end());
  std::sort(in_doubt_truly.begin(), in_doubt_truly.end());
  EXPECT_EQ(in_doubt, in_doubt_truly);
}

std::set<std::string> pins_of(const std::string& stem, int first, int end) {
  std::set<std::string> pins;
  for (int i = first; i < end; ++i) pins.insert(stem + std::to_string(i));
  return pins;
}

/// Another stretch of the same machine, in which A7 is not seen to count and A10 to A15 look alike.
std::string other_capture() { return test::shared_file("ibm5150/ibm5150_samples_0_657000.sr"); }

TEST_P(ActivityMatching, FindsTwelveProbesOfARealMachine) {
  std::set<std::string> pins = pins_of("AD", 0, 8);
  pins.merge(pins_of("S", 0, 3));
  pins.insert("CLK");
  for (const std::string& capture : {std::string(kSample), other_capture()}) {
    if (capture.empty()) continue;
    const auto samples = open_samples("sigrok", {shuffled(GetParam(), capture, pins)});
    const ActivityMatch match = match_by_activity(*samples);
    EXPECT_EQ(match.pins.size(), pins.size()) << capture;
    for (const ActivityMatch::Pin& pin : match.pins)
      EXPECT_EQ(pin.channel, truth_.at(pin.pin)) << pin.pin << ": " << pin.reason;
  }
}

TEST_P(ActivityMatching, LeavesLinesOutWhereTheirOrderWouldLoseTheQueue) {
  if (other_capture().empty()) GTEST_SKIP() << "no shared data: set CITCAT_SHARED";
  std::set<std::string> pins = pins_of("AD", 0, 8);
  pins.merge(pins_of("A", 8, 20));
  pins.merge(pins_of("S", 0, 3));
  pins.merge(std::set<std::string>{"CLK", "QS0", "QS1", "INTR"});
  const auto samples = open_samples("sigrok", {shuffled(GetParam(), other_capture(), pins)});
  const ActivityMatch match = match_by_activity(*samples);
  ASSERT_EQ(match.doubts.size(), 1u);
  std::size_t queue_pins = 0;
  for (const ActivityMatch::Pin& pin : match.pins) {
    queue_pins += pin.pin == "QS0" || pin.pin == "QS1" ? 1 : 0;
    const bool in_doubt = match.doubts[0].find(pin.pin + ",") != std::string::npos ||
                          match.doubts[0].find(pin.pin + ":") != std::string::npos;
    if (!in_doubt) {
      EXPECT_EQ(pin.channel, truth_.at(pin.pin)) << pin.pin << ": " << pin.reason;
    } else {
      EXPECT_EQ(match.doubts[0].find("left out"), std::string::npos) << pin.pin;
    }
  }
  EXPECT_EQ(queue_pins, 2u);
}

INSTANTIATE_TEST_SUITE_P(Orders, ActivityMatching, testing::Values(1u, 2u, 3u));

class ActivityOfOthers : public test::TemporaryFolder {};

TEST_F(ActivityOfOthers, IsRefusedWithWhatWasNotFound) {
  test::Samples noise;
  for (int c = 0; c < 32; ++c) noise.names.push_back("D" + std::to_string(c));
  noise.unit = 4;
  std::mt19937_64 random(7);
  for (int i = 0; i < 40000; ++i) noise.bytes.push_back(static_cast<std::uint8_t>(random()));
  test::write_sigrok(noise, path("noise.sr"));
  const auto samples = open_samples("sigrok", {path("noise.sr")});
  try {
    match_by_activity(*samples);
    FAIL() << "noise is no processor";
  } catch (const FormatError& error) {
    EXPECT_NE(std::string(error.what()).find("no clock with three lines that show bus cycles"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(ActivityOfOthers, AnotherProcessorIsRefused) {
  const std::string session =
      test::shared_file("logic-analyser-samples/sigrok-dumps_z80_kc85_kc85-20mhz.sr");
  if (session.empty()) GTEST_SKIP() << "no shared data: set CITCAT_SHARED";
  const auto samples = open_samples("sigrok", {session});
  EXPECT_THROW(match_by_activity(*samples), FormatError);
}

}  // namespace
}  // namespace citcat
