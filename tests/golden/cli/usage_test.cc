// Command lines that are easily mistaken: what is asked for is done, or the mistake is named.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A recording of an 8088 in every folder.
class Usage : public CitcatTest {
 protected:
  void SetUp() override { import_sample("pc.citcat"); }
};

TEST_F(Usage, AnOptionThatMayBeRepeatedTakesOneValueOnly) {
  EXPECT_THAT(good({"analyze", "--tool", "io", "pc.citcat"}), HasSubstr("621"));
  EXPECT_EQ(good({"analyze", "--tool", "io", "--tool", "count", "pc.citcat", "--json"}),
            good({"analyze", "pc.citcat", "--tool", "io", "--tool", "count", "--json"}));
}

TEST_F(Usage, ARecordingIsNotImportedAgain) {
  const ProcessResult result = run({"import", "pc.citcat"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("pc.citcat is a recording already"));
}

TEST_F(Usage, AnArgumentTooManyIsNamed) {
  EXPECT_THAT(run({"verify", "pc.citcat", "second"}).err,
              HasSubstr("verify does not expect a further argument, found second (see"));
  EXPECT_THAT(run({"verify", "pc.citcat", "second", "third"}).err, HasSubstr("found second (see"));
}

TEST_F(Usage, WhyNamesARegisterThatTheProcessorDoesNotHave) {
  for (const char* const name : {"eax", "rax", "r8", "fs", "gs", "mm0", "xmm0"}) {
    const ProcessResult result = run({"why", "pc.citcat", "--at", "100", "--register", name});
    EXPECT_EQ(result.exit_code, 2) << name;
    EXPECT_THAT(result.err, HasSubstr("has no such register")) << name;
  }
  good({"why", "pc.citcat", "--at", "100", "--register", "ax"});
}

TEST_F(Usage, WhyNamesAMomentThatIsNone) {
  const ProcessResult result = run({"why", "pc.citcat", "--at", "5+3", "--register", "ax"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--at 5+3: instruction 5 does not come to this iteration"));
}

TEST_F(Usage, ANumberIsNeitherNegativeNorTooLargeNorOctal) {
  for (const char* const limit :
       {"-3", "-0", "+3", "010", "1e3", "18446744073709551616", "0x", ""}) {
    const ProcessResult result =
        run({"why", "pc.citcat", "--at", "100", "--register", "ax", "--limit", limit});
    EXPECT_EQ(result.exit_code, 2) << limit;
    EXPECT_THAT(result.err, HasSubstr("expected a number")) << limit;
  }
  // A number within limits, which may have a sign.
  for (const char* const jobs : {"-3", "0", "02", "99999999999", "1.0"}) {
    const ProcessResult result = run({"analyze", "pc.citcat", "--tool", "count", "--jobs", jobs});
    EXPECT_EQ(result.exit_code, 2) << jobs;
    EXPECT_THAT(result.err, HasSubstr("--jobs: expected a number")) << jobs;
  }
  for (const char* const limit : {"0", "3", "0x10", "18446744073709551615"}) {
    good({"why", "pc.citcat", "--at", "100", "--register", "ax", "--limit", limit});
  }
}

TEST_F(Usage, ReplaySaysThatAnUnknownEndingGetsKt) {
  const ProcessResult text = run({"replay", "pc.citcat", "-o", "pc.txt"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.err, HasSubstr("pc.txt: a KT trace"));
  EXPECT_THAT(run({"replay", "pc.citcat", "-o", "pc.kt"}).err, IsEmpty());
  EXPECT_THAT(run({"replay", "pc.citcat", "-o", "asked", "--format", "kt"}).err, IsEmpty());
}

TEST_F(Usage, ReplaySaysThatNothingOfTheRunIsInTheFormat) {
  const ProcessResult result = run({"replay", "pc.citcat", "-o", "pc.trc"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("pc.trc: no records"));
}

}  // namespace
}  // namespace citcat::testing
