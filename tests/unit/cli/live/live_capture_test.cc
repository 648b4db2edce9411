// Captures by sigrok-cli: its demo driver, and what is said where something is missing.

#include "cli/live/live_capture.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "formats/captures/vcd.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

bool has_sigrok() { return std::system("sigrok-cli --version > /dev/null 2>&1") == 0; }

std::string refusal(const std::string& source) {
  std::vector<std::string> names{source};
  try {
    LiveCaptures live(names, Console(false));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(LiveCapture, SourcesAreToldFromFiles) {
  EXPECT_TRUE(is_live_source("sigrok:demo"));
  EXPECT_FALSE(is_live_source("sigrok.sr"));
  const auto arguments =
      live_arguments("sigrok:fx2lafw:conn=1.5 --config samplerate=24m --time 1s");
  EXPECT_EQ(arguments,
            (std::vector<std::string>{"sigrok-cli", "--driver", "fx2lafw:conn=1.5", "--config",
                                      "samplerate=24m", "--time", "1s", "--output-format", "vcd"}));
  EXPECT_THROW(live_arguments("sigrok:demo"), UsageError) << "how long?";
  EXPECT_THROW(live_arguments("sigrok: --samples 1"), UsageError) << "no driver";
  for (const char* output : {"-o x", "-ox", "-O csv", "--output-file=x", "--output-format hex"})
    EXPECT_THROW(live_arguments("sigrok:demo --samples 1 " + std::string(output)), UsageError)
        << output;
}

TEST(LiveCapture, OfTheDemoDriverHasItsSamples) {
  if (!has_sigrok()) GTEST_SKIP() << "no sigrok-cli (Debian package sigrok-cli)";
  std::vector<std::string> names{
      "kept.sr", "sigrok:demo --config samplerate=1m --samples 1000 --channels D0,D1"};
  LiveCaptures live(names, Console(false));
  EXPECT_EQ(names[0], "kept.sr");
  const auto source = open_vcd(std::make_unique<InputStream>(names[1]));
  EXPECT_EQ(source->info().channels, (std::vector<std::string>{"D0", "D1"}));
  EXPECT_DOUBLE_EQ(source->info().sample_rate_hz, 1e6);
  SampleBlock block;
  ASSERT_TRUE(source->next(block));
  EXPECT_GT(block.bytes.size(), 1u);
}

TEST(LiveCapture, SaysWhatIsMissing) {
  if (!has_sigrok()) GTEST_SKIP() << "no sigrok-cli (Debian package sigrok-cli)";
  EXPECT_NE(refusal("sigrok:nosuch --samples 10").find("Driver nosuch not found"),
            std::string::npos);
  EXPECT_NE(refusal("sigrok:fx2lafw --samples 10").find("sigrok-cli --scan"), std::string::npos);
}

TEST(LiveCapture, SaysThatTheProgramIsMissing) {
  const char* const path = std::getenv("PATH");
  const std::string before = path == nullptr ? "" : path;
  setenv("PATH", "/nowhere", 1);
  const std::string message = refusal("sigrok:demo --samples 10");
  setenv("PATH", before.c_str(), 1);
  EXPECT_NE(message.find("install the package sigrok-cli"), std::string::npos) << message;
}

}  // namespace
}  // namespace citcat
