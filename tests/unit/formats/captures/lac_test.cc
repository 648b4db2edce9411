// Captures of the Pico logic analyser, of each version of its program.

#include "formats/captures/lac.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/io/error.h"

namespace citcat {
namespace {

std::unique_ptr<SampleSource> lac(std::string_view text) {
  return open_lac(std::make_unique<InputStream>(
      std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()), "file"));
}

std::vector<int> lac_levels(SampleSource& source) {
  std::vector<int> levels;
  for (SampleBlock block; source.next(block);)
    levels.insert(levels.end(), block.bytes.begin(), block.bytes.end());
  return levels;
}

std::string lac_refusal(std::string_view text) {
  try {
    lac(text);
  } catch (const FormatError& error) {
    return error.what();
  }
  return "";
}

TEST(Lac, SamplesAreKeptWithTheirChannel) {
  const auto source = lac(R"({"Settings": {"Frequency": 24000000, "CaptureChannels": [
             {"ChannelNumber": 2, "ChannelName": "CLK", "Samples": "AAEA"},
             {"ChannelNumber": 5, "ChannelName": "", "Samples": "AQEA"}]}, "Samples": null})");
  EXPECT_EQ(source->info().channels, (std::vector<std::string>{"CLK", "5"}));
  EXPECT_DOUBLE_EQ(source->info().sample_rate_hz, 24e6);
  EXPECT_EQ(lac_levels(*source), (std::vector<int>{2, 3, 0}));
}

TEST(Lac, SamplesOfAllChannelsAreNumbersOrTheirDigits) {
  const auto source = lac(R"({"Settings": {"Frequency": 1, "CaptureChannels": [
      {"ChannelName": "A"}, {"ChannelName": "B"}]}, "Samples": [0, 1, "3", "2"]})");
  EXPECT_EQ(lac_levels(*source), (std::vector<int>{0, 1, 3, 2}));
  const auto oldest = lac(R"({"Settings": {"Frequency": 1, "CaptureChannels": [0, 7],
      "ChannelTexts": ["CLK"]}, "Samples": [0, 3]})");
  EXPECT_EQ(oldest->info().channels, (std::vector<std::string>{"CLK", "7"}));
}

TEST(Lac, ErrorsSayWhatIsMissing) {
  EXPECT_NE(lac_refusal("{").find("JSON"), std::string::npos);
  EXPECT_NE(lac_refusal("{}").find("'Settings'"), std::string::npos);
  const std::string head = R"({"Settings": {"Frequency": 1, "CaptureChannels": [)";
  EXPECT_NE(lac_refusal(head + "]}}").find("1 to 128"), std::string::npos);
  EXPECT_NE(lac_refusal(head + R"({"ChannelName": "A"}]}})").find("channel 'A'"),
            std::string::npos);
  EXPECT_NE(lac_refusal(head + R"({"ChannelName": "A"}]}, "Samples": [-1]})").find("sample 0"),
            std::string::npos);
  EXPECT_NE(
      lac_refusal(head + R"({"Samples": "AAEA"}, {"Samples": "AAEAAA=="}]}})").find("expected 3"),
      std::string::npos);
}

}  // namespace
}  // namespace citcat
