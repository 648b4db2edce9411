// CITCAT_LOG: what the program says of itself on request.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Log : public CitcatTest {
 protected:
  ProcessResult verify_with(const std::string& setting) const {
    return run_shell("CITCAT_LOG=" + setting + " \"$CITCAT\" verify -q r.citcat", file("."));
  }
};

TEST_F(Log, TellsDecisionsOfTheModulesAskedForOnStandardErrorAlone) {
  import_sample("r.citcat");
  const ProcessResult quiet = run({"verify", "-q", "r.citcat"});
  EXPECT_THAT(quiet.err, Not(HasSubstr("[session]")));
  const ProcessResult told = verify_with("session:info");
  EXPECT_EQ(told.exit_code, 0);
  EXPECT_THAT(told.err, HasSubstr("citcat: [session] replay from instruction 0, compared with"));
  EXPECT_EQ(told.out, quiet.out);
  EXPECT_THAT(verify_with("session:off").err, Not(HasSubstr("[session]")));
}

TEST_F(Log, TellsThatAnAnalysisOfWhatWasComparedDoesNotCompareItAgain) {
  import_sample("r.citcat");
  const auto analyze = [this] {
    return run_shell("CITCAT_LOG=session:info \"$CITCAT\" analyze -q r.citcat --tool cache --json",
                     file("."));
  };
  const ProcessResult before = analyze();
  EXPECT_THAT(before.err, HasSubstr("replay from instruction 0, compared with evidence"));
  EXPECT_EQ(run({"checkpoint", "-q", "r.citcat", "--every", "1000"}).exit_code, 0);
  const ProcessResult behind = analyze();
  EXPECT_THAT(behind.err, HasSubstr("replay from instruction 0, compared with nothing"));
  EXPECT_EQ(behind.out, before.out);
}

TEST_F(Log, RefusesASettingThatItDoesNotKnow) {
  import_sample("r.citcat");
  const ProcessResult wrong = verify_with("sesion:info");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err,
              HasSubstr("expected one of explain, import, place, session, found \"sesion\""));
  EXPECT_EQ(verify_with("loud").exit_code, 2);
}

}  // namespace
}  // namespace citcat::testing
