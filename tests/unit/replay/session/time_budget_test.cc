// When a search has to end, by a clock that the test moves.

#include "replay/session/time_budget.h"

#include <gtest/gtest.h>

namespace citcat::test {
namespace {

using namespace std::chrono_literals;

class TimeBudgetTest : public testing::Test {
 protected:
  TimeBudget budget(unsigned limit, TimeBudget::Counts counts) {
    return TimeBudget(
        limit, counts, [this] { return interrupted_; }, [this] { return now_; });
  }
  TimeBudget::Clock::time_point now_{100s};
  bool interrupted_ = false;
};

TEST_F(TimeBudgetTest, IsSpentAtItsLimitAndStaysSo) {
  TimeBudget time = budget(10, TimeBudget::Counts::all);
  now_ += 9s;
  EXPECT_FALSE(time.spent());
  time.gained();
  now_ += 1s;
  EXPECT_TRUE(time.spent());
  EXPECT_EQ(time.end(), TimeBudget::End::time);
  EXPECT_EQ(time.text(), "not through after 10 s");
  now_ -= 9s;
  EXPECT_TRUE(time.spent());
}

TEST_F(TimeBudgetTest, BeginsAnewWithEachGainWhereItCountsSinceThen) {
  TimeBudget time = budget(10, TimeBudget::Counts::since_gain);
  for (int i = 0; i < 5; ++i) {
    now_ += 9s;
    EXPECT_FALSE(time.spent());
    time.gained();
  }
  now_ += 10s;
  EXPECT_TRUE(time.spent());
  EXPECT_EQ(time.seconds(), 55);
  EXPECT_EQ(time.text(), "no further for 10 s");
}

TEST_F(TimeBudgetTest, OfZeroSecondsHasNoLimit) {
  TimeBudget time = budget(0, TimeBudget::Counts::all);
  now_ += 24h;
  EXPECT_FALSE(time.spent());
}

TEST_F(TimeBudgetTest, EndsWhereSomebodyInterruptsIt) {
  TimeBudget time = budget(0, TimeBudget::Counts::all);
  now_ += 3s;
  interrupted_ = true;
  EXPECT_TRUE(time.spent());
  EXPECT_EQ(time.end(), TimeBudget::End::interrupted);
  now_ += 4s;
  EXPECT_EQ(time.text(), "interrupted after 3 s");
}

}  // namespace
}  // namespace citcat::test
