// citcat demo: the way from the sample's pins to a page.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/demo/story.h"
#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DemoTest : public CitcatTest {};

TEST_F(DemoTest, TellsVerifiesAndShowsTheRunOfTheSample) {
  const std::string folder = file("pc of 1981");
  const std::string shown = good({"demo", "-o", folder, "--samples", CITCAT_SOURCE_DIR "/samples"});
  EXPECT_THAT(shown, HasSubstr("match: 621 instructions"));
  EXPECT_THAT(shown, HasSubstr("interrupt 08 (timer) came 9 times, first at instruction 0."));
  EXPECT_THAT(shown, HasSubstr("It wrote 13 values at ports: the interrupt controller, the timer"));
  EXPECT_THAT(shown, HasSubstr("writes to the screen's memory"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/pc.html"));
  // What it shows can be pasted.
  EXPECT_THAT(shown, HasSubstr("$ citcat verify '" + folder + "/pc.citcat'\n"));
}

TEST_F(DemoTest, NamesTheOptionWhereThereAreNoSamples) {
  const ProcessResult result = run({"demo", "-o", file("out"), "--samples", file("nothing")});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("area5150.sr"));
}

TEST(Story, GivesExceptionsNoNameOfTheFirmwaresInterrupts) {
  const auto tools = nlohmann::ordered_json::parse(R"({
    "events": {"events": [{"event": "exception 0e", "count": 9, "first": 1608},
                          {"event": "interrupt 0e", "count": 1, "first": 7}]},
    "io": {"ports": []}, "memory": {"busiest": []}, "count": {"blocks": {"hottest": []}}})");
  EXPECT_THAT(story(tools),
              ElementsAre("exception 0e came 9 times, first at instruction 1608.",
                          "interrupt 0e (diskette) came once, first at instruction 7."));
}

}  // namespace
}  // namespace citcat::testing
