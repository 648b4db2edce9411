// The sample of two processors, from the capture to the two instructions of its bug.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "golden/process.h"

namespace citcat::test {
namespace {

using Json = nlohmann::json;
using citcat::testing::ProcessResult;
using citcat::testing::run_citcat;

class TwoProcessorsSample : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string sample = CITCAT_SOURCE_DIR "/samples/two-processors/queue.";
    (void)good({"import", sample + "bin.zst", "--internal", "0=" + sample + "side.0.csv",
                "--internal", "1=" + sample + "side.1.csv", "--symbols", sample + "map", "-o",
                "queue.citcat"});
  }
  std::string good(const std::vector<std::string>& arguments) const {
    const ProcessResult result = run_citcat(arguments, folder_.path());
    EXPECT_EQ(result.exit_code, 0) << arguments[0] << ": " << result.err << result.out;
    return result.out;
  }

 private:
  citcat::testing::TemporaryFolder folder_;
};

TEST_F(TwoProcessorsSample, Matches) {
  const Json json = Json::parse(good({"verify", "queue.citcat", "--json"}));
  EXPECT_EQ(json.at("verdict"), "match") << json.dump(1);
  EXPECT_EQ(json.at("shared_bus").at("from_nobody"), 0);
  for (int p = 0; p < 2; ++p) EXPECT_GT(json.at("processors").at(p).at("instructions"), 30000) << p;
}

/// The writer has announced the message before it writes it: the reader was there in between.
TEST_F(TwoProcessorsSample, ShowsTheTwoInstructionsByName) {
  const Json json =
      Json::parse(good({"analyze", "queue.citcat", "--tool", "races", "--json"})).at("races");
  bool found = false;
  for (const Json& race : json.at("races")) {
    const auto first = race.at("first_instruction").get<std::string>();
    const auto second = race.at("second_instruction").get<std::string>();
    if (first.find(" write_message+") == std::string::npos ||
        second.find(" take+") == std::string::npos)
      continue;
    found = true;
    EXPECT_EQ(race.at("first_calls").get<std::string>().find("put+"), 0u) << race.dump();
    EXPECT_EQ(race.at("second_calls").get<std::string>().find("consume+"), 0u) << race.dump();
  }
  EXPECT_TRUE(found) << json.dump(1);
}

TEST_F(TwoProcessorsSample, SharingNamesWhoWroteAndWhoRead) {
  const Json json =
      Json::parse(good({"analyze", "queue.citcat", "--tool", "sharing", "--json"})).at("sharing");
  bool found = false;
  for (const Json& pair : json.at("pairs"))
    found |= pair.at("writer").get<std::string>().find(" write_message") != std::string::npos &&
             pair.at("reader").get<std::string>().find(" take+") != std::string::npos;
  EXPECT_TRUE(found) << json.dump(1);
}

}  // namespace
}  // namespace citcat::test
