#include "cli/parsing/suggestion.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace citcat {
namespace {

const std::vector<std::string> kCommands = {"record", "import", "replay", "merge",     "cat",
                                            "verify", "check",  "repair", "checkpoint"};
const std::vector<std::string> kOptions = {"--output", "-o", "--json", "--start", "--stop", "-q"};

TEST(EditDistance, CountsLettersThatDifferAreMissingOrAreSwapped) {
  EXPECT_EQ(edit_distance("verify", "verify"), 0U);
  EXPECT_EQ(edit_distance("", "cat"), 3U);
  EXPECT_EQ(edit_distance("cat", ""), 3U);
  EXPECT_EQ(edit_distance("verfy", "verify"), 1U);
  EXPECT_EQ(edit_distance("verifyy", "verify"), 1U);
  EXPECT_EQ(edit_distance("vorify", "verify"), 1U);
  EXPECT_EQ(edit_distance("vreify", "verify"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(NearestWord, IsWhatWasMisspelt) {
  EXPECT_EQ(nearest_word("exprot", kCommands), "");
  EXPECT_EQ(nearest_word("improt", kCommands), "import");
  EXPECT_EQ(nearest_word("relpay", kCommands), "replay");
  EXPECT_EQ(nearest_word("--ouput", kOptions), "--output");
  EXPECT_EQ(nearest_word("--jsno", kOptions), "--json");
}

TEST(NearestWord, IsTheOnlyOneThatBeginsSo) {
  EXPECT_EQ(nearest_word("checkp", kCommands), "checkpoint");
  EXPECT_EQ(nearest_word("--out", kOptions), "--output");
}

TEST(NearestWord, IsNoneWhereNothingIsNear) {
  EXPECT_EQ(nearest_word("frobnicate", kCommands), "");
  EXPECT_EQ(nearest_word("-x", kOptions), "");
  EXPECT_EQ(nearest_word("", kCommands), "");
}

TEST(DidYouMean, IsEmptyWhereNothingIsNear) {
  EXPECT_EQ(did_you_mean("improt", kCommands), " (did you mean import?)");
  EXPECT_EQ(did_you_mean("frobnicate", kCommands), "");
}

}  // namespace
}  // namespace citcat
