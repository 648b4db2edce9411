// Special cycles against those on the bus.

#include "replay/verify/special_matcher.h"

#include <gtest/gtest.h>

#include "unit/replay/verify/bus_transactions.h"

namespace citcat::test {
namespace {

TEST(SpecialMatcher, CyclesAgreeInTheOrderOfTheBus) {
  SpecialMatcher specials;
  ComparisonResult result;
  specials.expect(counted(BusOp::halt, 2, 0, 1));
  specials.expect(counted(BusOp::flush, 1, 0, 2));
  EXPECT_FALSE(specials.observe(BusOp::halt, result));
  EXPECT_FALSE(specials.observe(BusOp::flush, result));
  EXPECT_TRUE(specials.empty());
  EXPECT_EQ(result.totals.specials.equal, 2u);
}

TEST(SpecialMatcher, AnotherCycleIsAMismatch) {
  SpecialMatcher specials;
  ComparisonResult result;
  specials.expect(counted(BusOp::flush, 1, 0, 2));
  const auto mismatch = specials.observe(BusOp::halt, result);
  ASSERT_TRUE(mismatch && mismatch->expected);
  EXPECT_EQ(mismatch->expected->op, BusOp::flush);
  EXPECT_EQ(mismatch->found, "halt");
  EXPECT_EQ(result.totals.specials.checked, 1u);
  EXPECT_EQ(result.totals.specials.equal, 0u);
}

TEST(SpecialMatcher, ACycleThatTheBusDoesNotShowIsAMismatch) {
  SpecialMatcher specials;
  ComparisonResult result;
  const auto mismatch = specials.observe(BusOp::shutdown, result);
  ASSERT_TRUE(mismatch);
  EXPECT_FALSE(mismatch->expected);
}

TEST(SpecialMatcher, WhatIsLeftBeforeTheEndIsAMismatch) {
  SpecialMatcher specials;
  specials.expect(counted(BusOp::halt, 2, 0, 7));
  EXPECT_FALSE(specials.left_before({7, 0}));
  EXPECT_TRUE(specials.left_before({7, 1}));
}

}  // namespace
}  // namespace citcat::test
