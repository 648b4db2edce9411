// Captures and archives of versions that had addresses of 32 bits, in which stand-ins show memory
// beyond 4 GiB, are read as if they had been made today (tests/golden/earlier).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kEarlier = CITCAT_SOURCE_DIR "/tests/golden/earlier/";

class EarlierVersions : public CitcatTest {
 protected:
  std::string replayed(const std::string& recording) const {
    good({"replay", recording, "-o", "out.kt"});
    return read_file(file("out.kt"));
  }
  void import_capture() const {
    good({"import", kEarlier + "stand_ins.bin", "--cpu", "x86-64", "--internal", "none",
          "--initial-state", kEarlier + "state.json", "-o", "new.citcat"});
  }
};

TEST_F(EarlierVersions, TheirCapturesBecomeRecordingsWithTheMachinesAddresses) {
  import_capture();
  good({"verify", "new.citcat"});
  EXPECT_TRUE(replayed("new.citcat") == read_file(kEarlier + "stand_ins.kt"));
  const std::string evidence = good({"dump", "--evidence", "new.citcat"});
  EXPECT_THAT(evidence, HasSubstr("340014008 8877665544332211"));
  EXPECT_THAT(evidence, Not(HasSubstr("c0014008")));
}

TEST_F(EarlierVersions, TheirArchivesAreTheSameRecordings) {
  import_capture();
  const std::string old = kEarlier + "stand_ins.citcat";
  good({"verify", old});
  EXPECT_TRUE(replayed(old) == read_file(kEarlier + "stand_ins.kt"));
  EXPECT_EQ(good({"dump", "--evidence", old}), good({"dump", "--evidence", "new.citcat"}));
  EXPECT_EQ(good({"dump", old}), good({"dump", "new.citcat"}));
  good({"slim", old, "-o", "slim.citcat"});
  good({"verify", "slim.citcat"});
  EXPECT_TRUE(replayed("slim.citcat") == read_file(kEarlier + "stand_ins.kt"));
}

TEST_F(EarlierVersions, TheirCheckpointsAreUsed) {
  const std::string old = kEarlier + "stand_ins_checkpoints.citcat";
  for (const char* from : {"2", "4", "7", "9"}) {
    EXPECT_EQ(good({"cat", old, "--from", from, "--format", "text"}),
              good({"cat", old, "--from", from, "--format", "text", "--from-start"}))
        << from;
  }
}

TEST_F(EarlierVersions, TheirDigestsAreOfOtherAddressesAndAreLeftOut) {
  const std::string old = kEarlier + "stand_ins_slim.citcat";
  EXPECT_THAT(good({"info", "--json", old}), HasSubstr("digests of this recording"));
  good({"replay", "--unchecked", old, "-o", "out.kt"});
  EXPECT_TRUE(read_file(file("out.kt")) == read_file(kEarlier + "stand_ins.kt"));
}

TEST_F(EarlierVersions, PagesThatFollowEachOtherOnlyThereAreWrittenApart) {
  for (const char* name : {"two_pages.citcat", "two_pages_checkpoints.citcat"}) {
    good({"verify", kEarlier + name});
    EXPECT_TRUE(replayed(kEarlier + name) == read_file(kEarlier + "two_pages.kt"));
    const std::string events = good({"dump", kEarlier + name});
    EXPECT_THAT(events, HasSubstr("address 340014ffc data a8a7a6a5"));
    EXPECT_THAT(events, HasSubstr("address 7f000015000 data b8b7b6b5"));
  }
}

}  // namespace
}  // namespace citcat::testing
