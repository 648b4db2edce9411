// Windows of a run that another process opens and closes, and what is selected of a run as text.

#include <gtest/gtest.h>

#include <string>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

class Windows : public CitcatTest {
 protected:
  void SetUp() override { import_sample("ibm.citcat"); }
  /// What is printed goes into the pipe as one piece: of lines that follow one another the run may
  /// be over before the second.
  static inline const std::string kAtOnce = " | dd bs=4096 iflag=fullblock status=none >&3";
  /// A run of `analyze` that `writer`, commands of a shell with the pipe open as 3, steers.
  ProcessResult steered(const std::string& writer) const {
    return run_shell("mkfifo steer; (exec 3> steer; " + writer + ") & " +
                         "\"$CITCAT\" analyze ibm.citcat --tool count --tool cache --json --window control:steer -q",
                     file(""));
  }
  std::string with(const std::string& window) const {
    return good({"analyze", "ibm.citcat", "--tool", "count", "--tool", "cache", "--json", "--window", window, "-q"});
  }
  /// Of the decisions, without the comment.
  std::string decided() const {
    const std::string text = read_file(file("steer.windows"));
    return text.substr(text.find('\n') + 1);
  }
};

TEST_F(Windows, FromOutsideAreWhatWasWrittenAndAreRepeatedByTheirFile) {
  const ProcessResult run = steered("printf 'open 100\\nclose 120\\nopen 300\\nclose 301\\nopen 600\\n'" + kAtOnce);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(decided(), "100-120\n300-301\n600-\n");
  EXPECT_EQ(run.out, with("100-120, 300-301, 600-"));
  EXPECT_EQ(run.out, with("file:steer.windows"));
}

TEST_F(Windows, FromOutsideWithoutAPlaceBeginWhereTheRunIs) {
  const ProcessResult run = steered("echo open >&3");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(decided(), "0-\n");
  EXPECT_EQ(run.out, with("0-"));
}

TEST_F(Windows, ThatNobodyOpensAreNone) {
  const ProcessResult run = steered("echo close >&3");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(decided(), "");
  EXPECT_EQ(run.out, with("file:steer.windows"));
  EXPECT_EQ(run.out, with("none"));
}

TEST_F(Windows, FromOutsideInAnotherLanguageAreRefusedWithTheirPlace) {
  const ProcessResult run = steered("printf 'open 5\\nshut 7\\n'" + kAtOnce);
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_NE(run.err.find("steer:7: expected open or close, found \"shut\""), std::string::npos) << run.err;
  EXPECT_FALSE(std::filesystem::exists(file("steer.windows")));
}

TEST_F(Windows, OfAFileMustBeInOrder) {
  write_file(file("list"), "1-5\n# more\n4-9\n");
  const ProcessResult result = run({"count", "ibm.citcat", "--window", "file:list"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find("list:11: expected FROM-TO"), std::string::npos) << result.err;
}

TEST_F(Windows, DumpPrintsWhatIsSelectedAsOfItsTrace) {
  for (const char* const format : {"text", "json", "csv"}) {
    good({"replay", "ibm.citcat", "-o", "part.kt.zst", "--window", "10-20, 40-60", "-q"});
    const std::string expected = good({"dump", "part.kt.zst", "--format", format});
    EXPECT_EQ(good({"dump", "ibm.citcat", "--window", "10-20, 40-60", "--format", format}), expected);
  }
  const std::string split = good({"dump", "ibm.citcat", "--by", "level", "--to", "50", "--format", "csv"});
  EXPECT_EQ(split.find("group,kind"), 0U);
  EXPECT_NE(split.find("\"level=0\",instruction,49"), std::string::npos) << split;
  EXPECT_EQ(run({"dump", "ibm.citcat", "--where", "level=0", "--state"}).exit_code, 2);
  EXPECT_EQ(run({"dump", "part.kt.zst", "--where", "level=0"}).exit_code, 3);
}

}  // namespace
}  // namespace citcat::testing
