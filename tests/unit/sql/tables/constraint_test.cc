#include "sql/tables/constraint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace citcat::sql {
namespace {

using Is = Constraint::Is;

Cell real(double value) {
  Cell cell;
  cell.kind = Cell::Kind::real;
  cell.real = value;
  return cell;
}
Cell integer(std::int64_t value) { return Cell::of(static_cast<std::uint64_t>(value)); }

IntegerRange one(Is is, Cell value) { return integers_of({{is, 0, value}}, 0); }

constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
constexpr auto kMost = std::numeric_limits<std::int64_t>::max();

TEST(Constraint, IntegersAreBoundedAsTheyAreCompared) {
  EXPECT_EQ(one(Is::equal, integer(5)), (IntegerRange{5, 5}));
  EXPECT_EQ(one(Is::greater, integer(5)), (IntegerRange{6, kMost}));
  EXPECT_EQ(one(Is::at_least, integer(5)), (IntegerRange{5, kMost}));
  EXPECT_EQ(one(Is::less, integer(5)), (IntegerRange{kLeast, 4}));
  EXPECT_EQ(one(Is::at_most, integer(5)), (IntegerRange{kLeast, 5}));
  EXPECT_TRUE(one(Is::greater, integer(kMost)).empty());
  EXPECT_TRUE(one(Is::less, integer(kLeast)).empty());
}

TEST(Constraint, NumbersWithAPointLieBetweenIntegers) {
  EXPECT_EQ(one(Is::greater, real(5.5)), (IntegerRange{6, kMost}));
  EXPECT_EQ(one(Is::at_least, real(-5.5)), (IntegerRange{-5, kMost}));
  EXPECT_EQ(one(Is::less, real(5.5)), (IntegerRange{kLeast, 5}));
  EXPECT_EQ(one(Is::at_most, real(-5.5)), (IntegerRange{kLeast, -6}));
  EXPECT_EQ(one(Is::less, real(5.0)), (IntegerRange{kLeast, 4}));
  EXPECT_TRUE(one(Is::equal, real(5.5)).empty());
  EXPECT_EQ(one(Is::equal, real(5.0)), (IntegerRange{5, 5}));
  EXPECT_TRUE(one(Is::greater, real(1e30)).empty());
  EXPECT_TRUE(one(Is::less, real(1e30)).is_all());
  EXPECT_TRUE(one(Is::less, real(-INFINITY)).empty());
  EXPECT_TRUE(one(Is::greater, real(-INFINITY)).is_all());
}

TEST(Constraint, NothingComparesWithNullAndTextsComeBehindNumbers) {
  EXPECT_TRUE(one(Is::less, Cell::null()).empty());
  EXPECT_TRUE(one(Is::equal, Cell::null()).empty());
  EXPECT_TRUE(one(Is::less, Cell::lasting("a")).is_all());
  EXPECT_TRUE(one(Is::greater, Cell::lasting("a")).empty());
  EXPECT_TRUE(one(Is::equal, Cell::lasting("a")).empty());
}

TEST(Constraint, SeveralOfOneColumnHoldTogether) {
  const Constraints both{{Is::at_least, 2, integer(3)},
                         {Is::less, 2, integer(9)},
                         {Is::equal, 1, Cell::lasting("sh")}};
  EXPECT_EQ(integers_of(both, 2), (IntegerRange{3, 8}));
  EXPECT_TRUE(integers_of(both, 0).is_all());
  EXPECT_EQ(text_of(both, 1), "sh");
  EXPECT_EQ(text_of(both, 2), std::nullopt);
}

}  // namespace
}  // namespace citcat::sql
