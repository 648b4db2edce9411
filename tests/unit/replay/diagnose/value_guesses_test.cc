// Values found again through what becomes of them.

#include "replay/diagnose/value_guesses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace citcat::test {
namespace {

using ::testing::Contains;

struct Flow {
  const char* name;
  std::function<std::uint32_t(std::uint32_t)> result;
};
void PrintTo(const Flow& flow, std::ostream* out) { *out << flow.name; }

class SolvedThrough : public testing::TestWithParam<Flow> {};

TEST_P(SolvedThrough, IsTheValueThatTheBusShowsTheResultOf) {
  constexpr std::uint32_t kPairs[][2] = {{0x00000f4d, 0x00004d0f},
                                         {0xc304dad4, 0x243a4095},
                                         {0x00000000, 0xfffffb0f},
                                         {0x80000001, 0x00000001}};
  for (const auto& [right, wrong] : kPairs) {
    const std::vector<ShownDifference> shown{{GetParam().result(wrong), GetParam().result(right)}};
    EXPECT_THAT(solved_values(wrong, 32, shown), Contains(right)) << std::hex << wrong;
  }
}

INSTANTIATE_TEST_SUITE_P(, SolvedThrough,
                         testing::Values(Flow{"moved", [](std::uint32_t v) { return v; }},
                                         Flow{"added to", [](std::uint32_t v) { return v + 77; }},
                                         Flow{"taken from", [](std::uint32_t v) { return 5 - v; }},
                                         Flow{"turned", [](std::uint32_t v) { return v ^ 0x5a5a; }},
                                         Flow{"negated", [](std::uint32_t v) { return ~v; }}));

TEST(SolvedValue, IsFoundByPartsOfARegister) {
  EXPECT_THAT(solved_values(0x12345678, 32, {{0x56, 0xab}}), Contains(0x1234ab78u)) << "AH";
  EXPECT_THAT(solved_values(0x12345678, 32, {{0x78, 0xab}}), Contains(0x123456abu)) << "AL";
  EXPECT_THAT(solved_values(0x12345678, 32, {{0x5678, 0xabcd}}), Contains(0x1234abcdu)) << "AX";
}

TEST(SolvedValue, OfASegmentIsASixteenthOfTheAddress) {
  EXPECT_THAT(solved_values(0x1451, 16, {{0x14510 + 0x20, 0x358a0 + 0x20}}), Contains(0x358au));
}

TEST(SolvedValue, OfAnIndexIsItsScaledPart) {
  EXPECT_THAT(solved_values(3, 32, {{0x1000 + 3 * 8, 0x1000 + 9 * 8}}), Contains(9u));
}

TEST(MistypedValue, IsFoundFromEachWayToGetItWrong) {
  EXPECT_THAT(mistyped_values(0x4d0f, 16), Contains(0x0f4du)) << "bytes swapped";
  EXPECT_THAT(mistyped_values(0x4d0f0000, 32), Contains(0x00000f4du)) << "all four";
  EXPECT_THAT(mistyped_values(0xffdd, 16), Contains(0xffdeu)) << "one off";
  EXPECT_THAT(mistyped_values(0x0358, 16), Contains(0x358au)) << "a digit too few";
  EXPECT_THAT(mistyped_values(0x3580, 16), Contains(0x0358u)) << "a digit too many";
  EXPECT_THAT(mistyped_values(0xfffffb0f, 32), Contains(0x4f1u)) << "negated";
  EXPECT_THAT(mistyped_values(0x1234, 16), Contains(0u)) << "cleared";
}

TEST(MistypedValue, IsNeverTheValueItself) {
  for (const std::uint64_t v : {0x0ull, 0xffull, 0x1212ull, 0xffffull}) {
    EXPECT_THAT(mistyped_values(v, 16), testing::Not(Contains(v)));
    EXPECT_THAT(solved_values(v, 16, {{v, v}, {0, 0}}), testing::Not(Contains(v)));
  }
}

}  // namespace
}  // namespace citcat::test
