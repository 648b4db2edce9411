#include "cli/progress.h"

#include <gtest/gtest.h>

#include <string>

namespace citcat {
namespace {

const ProgressState kHalf{"replaying", "instructions", "", 12'300'000, 24'600'000, 10};
const ProgressState kEndless{"importing", "transactions", "", 4'560'000'000, 0, 4};
const ProgressState kNamed{
    "explaining", "instructions", "trying causes of the second divergence", 1'500'000, 0, 65};

TEST(ProgressLine, SaysAllOfItWhereThereIsRoom) {
  EXPECT_EQ(progress_line(kHalf, 79), "replaying: 12.3M instructions, 1.2M/s, 50 %, 10 s left");
  EXPECT_EQ(progress_line(kEndless, 79), "importing: 4.6G transactions, 1.1G/s");
  EXPECT_EQ(progress_line(kNamed, 79),
            "explaining: trying causes of the second divergence: 1.5M, 65 s");
}

TEST(ProgressLine, LeavesOutTheRateFirstAndThenTheCount) {
  EXPECT_EQ(progress_line(kHalf, 50), "replaying: 12.3M instructions, 50 %, 10 s left");
  EXPECT_EQ(progress_line(kHalf, 39), "replaying: 50 %, 10 s left");
  EXPECT_EQ(progress_line(kEndless, 30), "importing: 4.6G transactions");
}

TEST(ProgressLine, IsNeverLongerThanItsColumns) {
  for (const ProgressState& state : {kHalf, kEndless, kNamed}) {
    for (unsigned columns = 0; columns < 100; ++columns) {
      EXPECT_LE(progress_line(state, columns).size(), columns);
    }
  }
}

TEST(ProgressLine, IsCutWhereNothingMoreCanBeLeftOut) {
  EXPECT_EQ(progress_line(kHalf, 9), "replaying");
}

}  // namespace
}  // namespace citcat
