// `cat` and `checkpoint`: a trace that is computed reads like one that is stored.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;

class Cat : public CitcatTest {
 protected:
  void SetUp() override {
    made_once([this] {
      import_sample("r.citcat");
      good({"replay", "r.citcat", "-o", "r.kt"});
    });
  }
  /// Output of the program's replay of [from, to).
  std::string part(const std::string& from, const std::string& to) const {
    good({"replay", "r.citcat", "--from", from, "--to", to, "-o", "part.kt", "--from-start"});
    return read_file(file("part.kt"));
  }
};

TEST_F(Cat, GivesTheTraceOfARecordingAndOfEveryStoredForm) {
  const std::string kt = read_file(file("r.kt"));
  EXPECT_TRUE(good({"cat", "r.citcat"}) == kt);
  EXPECT_TRUE(good({"cat", "r.kt"}) == kt);
  for (const char* name : {"r.ktz", "r.kt.zst"}) {
    good({"replay", "r.citcat", "-o", name});
    EXPECT_TRUE(good({"cat", name}) == kt) << name;
  }
}

TEST_F(Cat, GivesTheSamePartWithAndWithoutCheckpoints) {
  const std::string expected = part("321", "432");
  EXPECT_FALSE(expected.empty());
  EXPECT_TRUE(good({"cat", "r.citcat", "--from", "321", "--to", "432"}) == expected);
  const auto json =
      nlohmann::json::parse(good({"checkpoint", "r.citcat", "--every", "100", "--json"}));
  EXPECT_EQ(json.at("every"), 100);
  EXPECT_GT(json.at("checkpoints"), 4);
  EXPECT_TRUE(good({"cat", "r.citcat", "--from", "321", "--to", "432"}) == expected);
  const auto replayed = nlohmann::json::parse(
      good({"replay", "r.citcat", "--from", "321", "--to", "432", "-o", "p.kt", "--json"}));
  EXPECT_EQ(replayed.at("started_at"), 300);
  EXPECT_TRUE(read_file(file("p.kt")) == expected);
  // To the end, which only the evidence tells.
  const std::string rest = part("501", "99999999");
  EXPECT_TRUE(good({"cat", "r.citcat", "--from", "501"}) == rest);
  EXPECT_EQ(run({"verify", "r.citcat"}).exit_code, 0);
  EXPECT_EQ(run({"check", "r.citcat"}).exit_code, 0);
}

TEST_F(Cat, WhatLiesBehindTheEndIsAUsageErrorThatNamesTheEnd) {
  const auto behind = [&](const std::vector<std::string>& arguments, const char* end) {
    const ProcessResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments[0] << arguments[1];
    EXPECT_THAT(result.err, HasSubstr(end)) << arguments[0] << arguments[1];
    EXPECT_FALSE(std::filesystem::exists(file("x.kt")));
    EXPECT_FALSE(std::filesystem::exists(file("x.kt.partial")));
  };
  for (const bool checkpoints : {false, true}) {
    if (checkpoints) good({"checkpoint", "r.citcat", "--every", "100"});
    for (const char* from : {"622", "99999", "18446744073709551615"}) {
      behind({"replay", "r.citcat", "--from", from, "-o", "x.kt"}, "ends after 621 instructions");
      behind({"replay", "r.citcat", "--from", from}, "ends after 621 instructions");
      behind({"replay", "r.citcat", "--from", from, "-o", "x.kt", "--jobs", "2"},
             "ends after 621 instructions");
      behind({"cat", "r.citcat", "--from", from}, "ends after 621 instructions");
      behind({"cat", "r.citcat", "--from", from, "--format", "csv"}, "ends after 621 instructions");
    }
  }
  for (const char* command : {"cat", "dump"})
    behind({command, "r.kt", "--from", "99999"}, "r.kt ends after");
  behind({"dump", "r.citcat", "--evidence", "--from", "99999"}, "ends after 36544 transactions");
  behind({"dump", "r.citcat", "--from", "99999"}, "ends after 36544 transactions");
  behind({"replay", "r.citcat", "--from", "99999", "--shard", "1/2", "-o", "x.kt"}, "ends after");
  for (const char* command : {"cat", "dump", "replay"})
    EXPECT_EQ(run({command, "r.citcat", "--from", "9", "--to", "5"}).exit_code, 2);
  EXPECT_EQ(run({"replay", "r.citcat", "--from", "620", "-o", "x.kt"}).exit_code, 0);
}

TEST_F(Cat, PrintsRecordsForPeople) {
  const std::string text =
      good({"cat", "r.citcat", "--format", "text", "--bits", "16", "--from", "0", "--to", "10"});
  EXPECT_THAT(text, HasSubstr("push cx"));
  EXPECT_TRUE(good({"cat", "r.kt", "--format", "csv", "--to", "50"}) ==
              good({"dump", "r.kt", "--format", "csv", "--to", "50"}));
}

TEST_F(Cat, EndsQuietlyWhenItsReaderHasSeenEnough) {
  for (const char* form : {"kt", "text"}) {
    const std::string command = "cd '" + file(".").string() +
                                "' && { '" CITCAT_PROGRAM "' cat r.citcat --format " + form +
                                " 2>err; echo $? >status; } | head -c 100 >out";
    ASSERT_EQ(std::system(command.c_str()), 0);
    EXPECT_EQ(read_file(file("status")), "0\n") << form;
    EXPECT_EQ(read_file(file("err")), "") << form;
    EXPECT_EQ(read_file(file("out")).size(), 100U) << form;
  }
}

TEST_F(Cat, VerifiesARecordingOnceAndRemembersIt) {
  const std::string kt = read_file(file("r.kt"));
  const std::string before = read_file(file("r.citcat"));
  EXPECT_TRUE(good({"cat", "r.citcat"}) == kt);
  const std::string after = read_file(file("r.citcat"));
  EXPECT_GT(after.size(), before.size());
  const ProcessResult again = run({"replay", "r.citcat", "-o", "-"});
  EXPECT_TRUE(again.out == kt);
  EXPECT_TRUE(read_file(file("r.citcat")) == after);
  EXPECT_EQ(run({"check", "r.citcat"}).exit_code, 0);
  EXPECT_EQ(run({"verify", "r.citcat"}).exit_code, 0);
  // What is remembered is of no checkpoint: others have to be taken.
  const auto json =
      nlohmann::json::parse(good({"checkpoint", "r.citcat", "--every", "100", "--json"}));
  EXPECT_GT(json.at("checkpoints"), 4);
  EXPECT_TRUE(good({"cat", "r.citcat"}) == kt);
}

TEST_F(Cat, StreamsWhatCannotBeAddedToAllTheSame) {
  const std::string program = CITCAT_PROGRAM;
  const std::string folder = file("r.citcat").parent_path().string();
  const std::string command =
      "cd '" + folder + "' && cat r.citcat | '" + program + "' cat - >out 2>err; echo $? >status";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(read_file(file("status")), "0\n");
  EXPECT_EQ(read_file(file("err")), "");
  EXPECT_TRUE(read_file(file("out")) == read_file(file("r.kt")));
}

TEST_F(Cat, AddsNoCheckpointsToARecordingThatDiverges) {
  std::string state = read_file(CITCAT_SOURCE_DIR "/samples/ibm5150/state.json");
  const std::string right = "\"ax\":\"0x0f4d\"";
  ASSERT_NE(state.find(right), std::string::npos);
  state.replace(state.find(right), right.size(), "\"ax\":\"0x0f4c\"");
  write_file(file("wrong.json"), state);
  good({"import", CITCAT_SOURCE_DIR "/samples/ibm5150/area5150.sr", "--cpu", "8088",
        "--initial-state", "wrong.json", "--start", "interrupt:0", "-o", "wrong.citcat"});
  const std::string before = read_file(file("wrong.citcat"));
  const ProcessResult result = run({"checkpoint", "wrong.citcat", "--every", "10"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("diverged"));
  EXPECT_TRUE(read_file(file("wrong.citcat")) == before);
  // A stream of it goes as far as it is sure, like a file, and nothing is remembered.
  const ProcessResult stream = run({"cat", "wrong.citcat"});
  EXPECT_EQ(stream.exit_code, 1);
  EXPECT_THAT(stream.err, HasSubstr("diverged"));
  EXPECT_EQ(run({"replay", "wrong.citcat", "-o", "wrong.kt"}).exit_code, 1);
  EXPECT_TRUE(stream.out == read_file(file("wrong.kt.partial")));
  EXPECT_TRUE(read_file(file("wrong.citcat")) == before);
}

}  // namespace
}  // namespace citcat::testing
