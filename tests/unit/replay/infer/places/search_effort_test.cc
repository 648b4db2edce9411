// How long a search for places may go on.

#include "replay/infer/places/search_effort.h"

#include <gtest/gtest.h>

#include <chrono>

namespace citcat::test {
namespace {

TEST(SearchEffort, AllowsAsMuchAsThreeReplaysIncludingWhatIsLeft) {
  Recording recording;
  recording.instructions = 1000;
  SearchEffort effort(recording, nullptr);
  // From 400 on the rest is executed twice: 1200, so that 1800 are left for trials.
  EXPECT_TRUE(effort.allows(1800, 400));
  EXPECT_FALSE(effort.allows(1801, 400));
  effort.add_instructions(800);
  EXPECT_TRUE(effort.allows(1000, 400));
  EXPECT_FALSE(effort.allows(1001, 400));
}

TEST(SearchEffort, ReckonsTheLengthOfARunWithoutCountsFromTheEvidenceRead) {
  Recording recording;
  recording.totals.transactions = 100;
  SearchEffort effort(recording, nullptr);
  effort.come_to(500, 50);
  effort.come_to(300, 60);  // nothing new
  EXPECT_EQ(effort.furthest(), 500u);
  // A thousand in all.
  EXPECT_TRUE(effort.allows(2000, 500));
  EXPECT_FALSE(effort.allows(2001, 500));
}

TEST(SearchEffort, IsSpentWithItsTimeUnlessItGetsFurther) {
  TimeBudget::Clock::time_point now{};
  TimeBudget time(10, TimeBudget::Counts::since_gain, {}, [&now] { return now; });
  Recording recording;
  SearchEffort effort(recording, &time);
  now += std::chrono::seconds(9);
  EXPECT_FALSE(effort.look_at_clock());
  effort.set_placed(1);
  effort.note_gain();
  now += std::chrono::seconds(9);
  EXPECT_FALSE(effort.look_at_clock());
  effort.set_placed(1);  // no more than before
  effort.note_gain();
  now += std::chrono::seconds(2);
  EXPECT_TRUE(effort.look_at_clock());
  EXPECT_TRUE(effort.spent());
}

}  // namespace
}  // namespace citcat::test
