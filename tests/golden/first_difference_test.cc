// scripts/first-difference finds the instruction after which two replays part: none for the two
// paths of one build, and the one behind a difference that was put into a recording.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class FirstDifference : public CitcatTest {
 protected:
  /// What the script says of this build, on both sides the build's `path`, and two recordings.
  ProcessResult compare(const std::string& path, const std::string& a, const std::string& b) const {
    const std::string build = std::filesystem::path(CITCAT_PROGRAM).parent_path().string();
    return run_shell(CITCAT_SOURCE_DIR "/scripts/first-difference --no-build " + build + " " +
                         build + path + " " + a + " " + b,
                     file("."));
  }
};

TEST_F(FirstDifference, ThereIsNoneBetweenBlocksAndSingleInstructions) {
  import_linux_sample("r.citcat");
  const ProcessResult result = compare(":instructions", "r.citcat", "r.citcat");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "the replays are the same\n");
}

TEST_F(FirstDifference, IsTheInstructionOfWhichOneRecordingHasAnotherByte) {
  import_sample("a.citcat");
  const std::string identity =
      nlohmann::json::parse(good({"info", "a.citcat", "--json"})).at("identity");
  const auto instruction = nlohmann::json::parse(
      good({"cat", "a.citcat", "--from", "100", "--to", "101", "--format", "json"}));
  // Another bus master puts NOP there just before.
  nlohmann::json hint;
  hint["kind"] = "external_write";
  hint["position"] = {{"instruction", 100}, {"iteration", 0}};
  hint["transaction"] = 1000;
  hint["address"] = "0x" + instruction.at("eip").get<std::string>();
  hint["data"] = "90";
  nlohmann::json hints;
  hints["citcat_hints"] = 1;
  hints["recording"] = identity;
  hints["hints"] = nlohmann::json::array({hint});
  write_file(file("nop.json"), hints.dump());
  good({"import", CITCAT_SOURCE_DIR "/samples/ibm5150/area5150.sr", "--cpu", "8088",
        "--initial-state", CITCAT_SOURCE_DIR "/samples/ibm5150/state.json", "--start",
        "interrupt:0", "--hints", "nop.json", "-o", "b.citcat"});
  const ProcessResult result = compare("", "a.citcat", "b.citcat");
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, StartsWith("first difference after instruction 101\n"));
  EXPECT_THAT(result.out, AllOf(HasSubstr("\nA: ran "), HasSubstr("\nB: ran "), HasSubstr(" nop\n"),
                                HasSubstr("\nB: eip ")));
}

}  // namespace
}  // namespace citcat::testing
