// A line that is held at a level is named: any line, at either level, of a real 8088 and of drawn
// pins of an 8086 and a 386SX; or the capture is as it was.

#include "capture/import/still_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "capture/inspect/lint.h"
#include "golden/pins/pin_drawing.h"
#include "golden/pins/pin_run.h"

namespace citcat::testing {
namespace {

struct HeldCase {
  const char* name;
  CpuModel cpu;
  PinForm form;
  /// Pins that a program need not move to one of the levels, so that it tells nothing.
  std::set<std::string> silent;
};

test::Samples samples_of_case(const HeldCase& c) {
  constexpr std::size_t kSamples = 40000;
  if (c.cpu == CpuModel::i8088)
    return test::read_samples(CITCAT_SOURCE_DIR "/samples/ibm5150/area5150.sr", kSamples);
  const std::string cpu(cpu_model_name(c.cpu));
  const PinCase pins{cpu.c_str(), c.form};
  const ModelRun run(pins, 1);
  test::Random random(1);
  return samples_of(*draw_pins(pins, run.unit, random), [](const std::string&) { return false; });
}

class HeldLines : public ::testing::TestWithParam<HeldCase> {};

TEST_P(HeldLines, AreNamed) {
  const HeldCase& c = GetParam();
  const test::Samples sound = samples_of_case(c);
  SampleInfo info;
  info.channels = sound.names;
  info.unit_bytes = sound.unit;
  const BusMatch match = choose_bus(info, {}, c.cpu);
  const auto complaints = [&](const test::Samples& samples) {
    StillLines lines(info);
    lines.add({0, samples.bytes, {}});
    return lines.complaints(match);
  };
  EXPECT_EQ(complaints(sound), std::vector<std::string>{});
  for (const PinMatch& pin : match.pins) {
    if (pin.channel < 0 || pin.pin->name.starts_with("CLK")) continue;
    for (const bool level : {false, true}) {
      test::Samples held = sound;
      for (std::size_t i = 0; i < held.count(); ++i)
        held.set(i, static_cast<std::size_t>(pin.channel), level);
      if (held.bytes == sound.bytes) continue;
      // A small program has its reasons: lint judges these by pages.
      if (c.form == PinForm::bus_386sx && pin.pin->address_bit > 0) continue;
      const std::string wanted = pin.pin->name + (level ? " stays high" : " stays low");
      const auto found = complaints(held);
      const bool named = std::any_of(found.begin(), found.end(), [&](const std::string& line) {
        return line.starts_with(wanted);
      });
      EXPECT_TRUE(named || c.silent.count(wanted) != 0) << wanted;
    }
  }
}

// INTR and the others are high, or low, for interrupts and ports alone.
INSTANTIATE_TEST_SUITE_P(
    Processors, HeldLines,
    ::testing::Values(HeldCase{"i8088",
                               CpuModel::i8088,
                               PinForm::status,
                               {"S2 stays high", "INTR stays low", "INTR stays high"}},
                      HeldCase{
                          "i8086",
                          CpuModel::i8086,
                          PinForm::status,
                          {"S2 stays high", "INTR stays low", "INTR stays high", "A19 stays low"}},
                      HeldCase{"i386", CpuModel::i386, PinForm::bus_386sx, {"MIO stays high"}}),
    [](const auto& test) { return test.param.name; });

/// With a line that is held, another one at the same level may make more sense of the code: that is
/// no sign that the two are exchanged.
TEST(LinesThatAreHeld, AreNotTakenForExchangedOrInvertedOnes) {
  const test::Samples sound =
      test::read_samples(CITCAT_SOURCE_DIR "/samples/ibm5150/area5150.sr", 60000);
  const std::string path = ::testing::TempDir() + "held_lines.sr";
  for (const std::string pin : {"QS0", "QS1", "S0", "S1", "S2", "AD3", "A9"}) {
    const auto channel = static_cast<std::size_t>(
        std::find(sound.names.begin(), sound.names.end(), pin) - sound.names.begin());
    for (const bool level : {false, true}) {
      test::Samples held = sound;
      for (std::size_t i = 0; i < held.count(); ++i) held.set(i, channel, level);
      test::write_sigrok(held, path);
      bool named = false;
      for (const LintFinding& finding : lint_capture({path}, {}, nullptr).findings) {
        EXPECT_NE(finding.check, "exchanged-lines") << pin << level << finding.text;
        EXPECT_NE(finding.check, "inverted-line") << pin << level << finding.text;
        named |= finding.text.find(pin + " stays ") != std::string::npos;
      }
      EXPECT_TRUE(named) << pin << level;
    }
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace citcat::testing
