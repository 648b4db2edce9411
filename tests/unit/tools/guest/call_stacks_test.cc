#include "tools/guest/call_stacks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace citcat::tools {
namespace {

constexpr std::uint32_t kKernel = CallStacks::kKernel, kProgram = 0x1000;

class Calls : public ::testing::Test, public CallListener {
 protected:
  void left(const CallFrame& frame, std::uint64_t instructions, bool outermost,
            bool /*outermost_arc*/) override {
    log_.push_back(std::to_string(frame.procedure) + ":" + std::to_string(instructions) +
                   (outermost ? "" : " within itself"));
  }
  void call(std::uint32_t slot, ProcedureNumber procedure, std::uint32_t space = kProgram) {
    stacks_.call(space, LinearAddr{slot}, 0, procedure);
  }
  void ret(std::uint32_t slot, std::uint32_t space = kProgram) {
    stacks_.returned(space, LinearAddr{slot});
  }

  CallStacks stacks_{*this};
  std::vector<std::string> log_;
};
using Log = std::vector<std::string>;

TEST_F(Calls, ACallHasWhatWasExecutedUntilItsReturn) {
  call(0x9000, 1);
  stacks_.executed(5);
  call(0x8ff0, 2);
  stacks_.executed(7);
  ret(0x8ff0);
  stacks_.executed(1);
  ret(0x9000);
  EXPECT_EQ(log_, (Log{"2:7", "1:13"}));
}

TEST_F(Calls, RecursionIsCountedOnceWhereItIsOutermost) {
  call(0x9000, 1);
  call(0x8ff0, 1);
  stacks_.executed(3);
  ret(0x8ff0);
  ret(0x9000);
  EXPECT_EQ(log_, (Log{"1:3 within itself", "1:3"}));
}

TEST_F(Calls, AReturnFromFartherOutEndsAllInBetween) {
  call(0x9000, 1);
  call(0x8ff0, 2);
  call(0x8fe0, 3);
  ret(0x9000);
  EXPECT_EQ(log_, (Log{"3:0", "2:0", "1:0"}));
}

TEST_F(Calls, ACallFromFartherOutEndsWhatLongjmpLeft) {
  call(0x9000, 1);
  call(0x8ff0, 2);
  call(0x8ff8, 3);
  EXPECT_EQ(log_, (Log{"2:0"}));
  EXPECT_EQ(stacks_.depth(), 2u);
}

TEST_F(Calls, AnInterruptIsNoPartOfWhatItInterruptsAndASystemCallIs) {
  call(0x9000, 1);
  stacks_.executed(10);
  stacks_.interrupted({KernelEntry::Kind::interrupt, 0x30});
  call(0xc0009000, 5, kKernel);
  stacks_.executed(100);
  ret(0xc0009000, kKernel);
  stacks_.resumed(kProgram);
  stacks_.interrupted({KernelEntry::Kind::call, 0});
  call(0xc0009000, 6, kKernel);
  stacks_.executed(1000);
  ret(0xc0009000, kKernel);
  stacks_.resumed(kProgram);
  ret(0x9000);
  EXPECT_EQ(log_, (Log{"5:100", "6:1000", "1:1010"}));
}

TEST_F(Calls, ASwitchOfTasksShowsInTheReturnOfTheOther) {
  // Two tasks in the kernel, each within a call of its own.
  stacks_.interrupted({KernelEntry::Kind::call, 0});
  call(0xc0009000, 1, kKernel);
  stacks_.executed(1);
  stacks_.moved();
  call(0xc0209000, 2, kKernel);
  stacks_.executed(20);
  stacks_.moved();
  ret(0xc0009000, kKernel);
  stacks_.executed(300);
  stacks_.moved();
  ret(0xc0209000, kKernel);
  EXPECT_EQ(log_, (Log{"1:1", "2:20"}));
}

/// Stacks of the kernel lie one behind the other, eight kilobytes each.
TEST_F(Calls, ANewTaskOnTheStackNextDoorHasCallsOfItsOwn) {
  stacks_.interrupted({KernelEntry::Kind::call, 0});
  call(0xc000bf00, 1, kKernel);
  stacks_.executed(1);
  stacks_.moved();
  ret(0xc0009ff0, kKernel);  // to where the new task begins
  stacks_.executed(20);
  call(0xc0009fe0, 2, kKernel);
  stacks_.executed(300);
  stacks_.moved();
  ret(0xc000bf00, kKernel);
  EXPECT_EQ(log_, (Log{"1:1"}));
}

TEST_F(Calls, AReturnOnTheStackNextDoorEndsNothingHere) {
  stacks_.interrupted({KernelEntry::Kind::call, 0});
  call(0xc0009f00, 1, kKernel);
  ret(0xc000bff0, kKernel);
  EXPECT_EQ(log_, Log{});
  ret(0xc0009f00, kKernel);
  EXPECT_EQ(log_, (Log{"1:0"}));
}

TEST_F(Calls, AHandlerThatLoadsItsStackPointerGoesBackToWhatItInterrupted) {
  call(0x9000, 1);
  stacks_.executed(2);
  stacks_.interrupted({KernelEntry::Kind::call, 0});
  stacks_.moved();
  call(0xc0009f00, 2, kKernel);
  stacks_.executed(5);
  ret(0xc0009f00, kKernel);
  stacks_.resumed(kProgram);
  ret(0x9000);
  EXPECT_EQ(log_, (Log{"2:5", "1:7"}));
}

TEST_F(Calls, WhatRunsWithoutACallIsBelowAllCallsAndNotOne) {
  stacks_.runs_in(kProgram);
  stacks_.begin(9);
  EXPECT_EQ(stacks_.depth(), 0u);
  call(0x9000, 1);
  EXPECT_EQ(stacks_.depth(), 1u);
  ret(0x9000);
  ret(0x9100);
  ASSERT_NE(stacks_.innermost(), nullptr);
  EXPECT_EQ(stacks_.innermost()->procedure, 9u);
  EXPECT_EQ(log_, (Log{"1:0"}));
}

TEST_F(Calls, ATaskThatIsSwitchedAwayWithinAnInterruptGoesOnWithIt) {
  call(0x9000, 1);
  stacks_.interrupted({KernelEntry::Kind::interrupt, 0x30});
  call(0xc0009000, 2, kKernel);  // schedule()
  stacks_.moved();
  call(0xc0209000, 3, kKernel);
  stacks_.executed(50);
  ret(0xc0209000, kKernel);
  stacks_.moved();
  ret(0xc0009000, kKernel);
  stacks_.resumed(kProgram);
  stacks_.executed(4);
  ret(0x9000);
  EXPECT_EQ(log_, (Log{"3:50", "2:0", "1:4"}));
}

TEST_F(Calls, AHandlerOfASignalLiesAboveWhatItInterrupts) {
  call(0x9000, 1);
  stacks_.interrupted({KernelEntry::Kind::call, 0});
  stacks_.resumed(kProgram);
  call(0x8800, 7);  // made by the handler
  ret(0x8800);
  ret(0x9000);
  EXPECT_EQ(log_, (Log{"7:0", "1:0"}));
}

TEST_F(Calls, AProcedureThatGoesOnAsAnotherIsThatOneFromThereOn) {
  call(0x9000, 1);
  stacks_.executed(2);
  stacks_.becomes(2);
  stacks_.executed(3);
  ret(0x9000);
  EXPECT_EQ(log_, (Log{"1:2", "2:3"}));
}

TEST_F(Calls, TwoProgramsWithTheSameAddressesHaveStacksOfTheirOwn) {
  call(0x9000, 1, 0x1000);
  stacks_.interrupted({KernelEntry::Kind::call, 0});
  stacks_.resumed(0x2000);
  call(0x9000, 2, 0x2000);
  ret(0x9000, 0x1000);
  EXPECT_EQ(log_, (Log{"1:0"}));
  stacks_.end();
  EXPECT_EQ(log_, (Log{"1:0", "2:0"}));
}

TEST_F(Calls, ReturnsOfCallsBeforeTheBeginningEndNothing) {
  ret(0x9000);
  call(0x9100, 1);
  ret(0x9200);
  EXPECT_EQ(log_, (Log{"1:0"})) << "the stack pointer has gone beyond it";
}

}  // namespace
}  // namespace citcat::tools
