#include "view/server/request_target.h"

#include <gtest/gtest.h>

#include <string>

namespace citcat::view {
namespace {

TEST(RequestTarget, IsTakenApartAndDecoded) {
  const auto target = parse_target("/token/api/find?text=a%26b+c&at=5~1&empty=&flag");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/token/api/find");
  EXPECT_EQ(target->parameters.at("text"), "a&b c");
  EXPECT_EQ(target->parameters.at("at"), "5~1");
  EXPECT_EQ(target->parameters.at("empty"), "");
  EXPECT_EQ(target->parameters.at("flag"), "");
}

TEST(RequestTarget, RefusesWhatIsNoneOrTooMuch) {
  EXPECT_FALSE(parse_target(""));
  EXPECT_FALSE(parse_target("http://elsewhere/"));
  EXPECT_FALSE(parse_target("/a?b=%4"));
  EXPECT_FALSE(parse_target("/%zz"));
  EXPECT_FALSE(parse_target("/" + std::string(5000, 'a')));
  std::string many = "/a?";
  for (int i = 0; i < 17; ++i) many += "p" + std::to_string(i) + "=1&";
  EXPECT_FALSE(parse_target(many));
}

}  // namespace
}  // namespace citcat::view
