// DR6 as a processor has it.

#include "monitor/state/data_breakpoints.h"

#include <gtest/gtest.h>

namespace citcat::monitor {
namespace {

class DataBreakpointsTest : public testing::Test {
 protected:
  void load(std::uint64_t control, bool clears = false, std::uint64_t status = 0) {
    LoggedState state;
    state.dr[6] = status;
    state.dr[0] = state.dr[1] = 0x1000;
    state.dr[2] = 0x1004;
    state.dr[3] = 0x2000;
    state.dr[7] = control;
    breakpoints_.load(state, clears);
  }
  DataBreakpoints breakpoints_;
};

// DR0: writes of 4 bytes, DR1 and DR2: both, DR3: code.
constexpr std::uint64_t kConditions = 0x0ffd0000;

TEST_F(DataBreakpointsTest, AllThatAnAccessMeetsAreTold) {
  load(kConditions | 0x0a);
  EXPECT_TRUE(breakpoints_.watch_data());
  breakpoints_.note(0x1002, 4, true);
  EXPECT_EQ(breakpoints_.bits(), 0u);
  breakpoints_.raised(0xffff0ff1, false);
  EXPECT_EQ(breakpoints_.bits(), 7u);
}

TEST_F(DataBreakpointsTest, OnlyLongModesProcessorsClearThoseOfAnEarlierOne) {
  for (const bool clears : {false, true}) {
    load(kConditions | 0x0a, clears, 0xffff0ff8);
    breakpoints_.note(0x1003, 1, false);
    breakpoints_.raised(0xffff0ff2, false);
    EXPECT_EQ(breakpoints_.bits(), clears ? 2u : 10u);
  }
}

TEST_F(DataBreakpointsTest, ABreakpointOfCodeBehindAnEarlierStepIsTold) {
  load(kConditions | 0x80, true, 0xffff4ff0);
  breakpoints_.raised(0xffff4ff8, false);
  EXPECT_EQ(breakpoints_.bits(), 8u);
}

TEST_F(DataBreakpointsTest, AReadMeetsNoBreakpointOfWrites) {
  load(kConditions | 0x0a);
  breakpoints_.note(0x1003, 1, false);
  breakpoints_.raised(0xffff0ff2, false);
  EXPECT_EQ(breakpoints_.bits(), 2u);
}

TEST_F(DataBreakpointsTest, NothingIsMetWhereNoneOfThemIsEnabled) {
  load(kConditions | 0x20);
  breakpoints_.note(0x1000, 4, true);
  breakpoints_.raised(0xffff0ff8, false);
  EXPECT_EQ(breakpoints_.bits(), 8u);
}

TEST_F(DataBreakpointsTest, ASingleStepTellsOfNoCodeBehindIt) {
  load(kConditions | 0x80);
  EXPECT_FALSE(breakpoints_.watch_data());
  breakpoints_.raised(0xffff4ff8, true);
  EXPECT_EQ(breakpoints_.bits(), 0u);
}

TEST_F(DataBreakpointsTest, AFaultMakesTheInstructionMeetThemAgain) {
  load(kConditions | 0x0a);
  breakpoints_.note(0x1000, 1, true);
  breakpoints_.abandon();
  breakpoints_.raised(0xffff4ff0, true);
  EXPECT_EQ(breakpoints_.bits(), 0u);
}

TEST_F(DataBreakpointsTest, BitsStayUntilTheyAreWritten) {
  load(kConditions | 0x0a);
  breakpoints_.note(0x1004, 4, true);
  breakpoints_.raised(0xffff0ff4, false);
  breakpoints_.note(0x1000, 1, false);
  breakpoints_.raised(0xffff0ff2, false);
  EXPECT_EQ(breakpoints_.bits(), 6u);
  load(kConditions | 0x0a);
  EXPECT_EQ(breakpoints_.bits(), 0u);
}

}  // namespace
}  // namespace citcat::monitor
