#include "events/position_text.h"

#include <gtest/gtest.h>

namespace citcat {
namespace {

TEST(PositionText, MayBeginWithTheNumberOfAProcessor) {
  EXPECT_EQ(split_processor("5000")->processor, std::nullopt);
  EXPECT_EQ(split_processor("5000")->place, "5000");
  EXPECT_EQ(split_processor("1:5000+2")->processor, 1u);
  EXPECT_EQ(split_processor("1:5000+2")->place, "5000+2");
  EXPECT_EQ(split_processor("12:end")->place, "end");
}

TEST(PositionText, HasANumberBeforeItsColon) {
  for (const char* const text : {":5", "x:5", "1x:5", "-1:5", " 1:5", "99999999999:5", "1:"})
    EXPECT_FALSE(split_processor(text)) << text;
}

}  // namespace
}  // namespace citcat
