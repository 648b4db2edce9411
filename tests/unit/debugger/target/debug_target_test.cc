// A watchpoint is told by whatever move passes over what meets it.

#include "debugger/target/debug_target.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "unit/debugger/watched_program.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

using P = WatchedProgram;
using Why = MoveEnd::Why;

class DebugTargetTest : public TemporaryFolder {
 protected:
  void SetUp() override {
    P().store(path("r.citcat"));
    file_.emplace(RecordingFile::open(path("r.citcat")));
    target_.emplace(*file_, ComparisonPolicy{}, false);
  }
  void watch(std::uint32_t address, std::uint32_t size,
             StopKind kind = StopKind::write_watchpoint) {
    target_->insert(kind, LinearAddr{address}, size);
  }
  void remove(std::uint32_t address, std::uint32_t size) {
    target_->remove(StopKind::write_watchpoint, LinearAddr{address}, size);
  }
  /// Goes to where the instruction at `address` is to run for the first time.
  void go_to(std::uint32_t address) {
    target_->insert(StopKind::software_breakpoint, LinearAddr{address}, 1);
    ASSERT_EQ(target_->go_on({}).why, Why::breakpoint);
    target_->remove(StopKind::software_breakpoint, LinearAddr{address}, 1);
    ASSERT_EQ(here(), address);
  }
  std::uint64_t here() const { return target_->next_instruction().value; }
  static void expect_watchpoint(const MoveEnd& end, std::uint32_t address,
                                StopKind kind = StopKind::write_watchpoint) {
    ASSERT_EQ(end.why, Why::watchpoint);
    EXPECT_EQ(end.watched, LinearAddr{address});
    EXPECT_EQ(end.kind, kind);
  }

  std::optional<RecordingFile> file_;
  std::optional<DebugTarget> target_;
};

TEST_F(DebugTargetTest, AStepTellsTheWatchpointItPassesOver) {
  go_to(P::kStore);
  watch(P::kCount, 4);
  expect_watchpoint(target_->step(), P::kCount);
  EXPECT_EQ(here(), P::kBehindStore);
  EXPECT_EQ(target_->step().why, Why::moved);
  EXPECT_EQ(target_->step_back().why, Why::moved);
  expect_watchpoint(target_->step_back(), P::kCount);
  EXPECT_EQ(here(), P::kStore);
  EXPECT_EQ(target_->step_back().why, Why::moved);
}

TEST_F(DebugTargetTest, AStepInARangeStopsAtEachStoreInIt) {
  go_to(P::kStore);
  watch(P::kCount, 4);
  for (int i = 0; i < 5; ++i) {
    expect_watchpoint(target_->step_in_range(LinearAddr{P::kStore}, 9, {}), P::kCount);
    EXPECT_EQ(here(), P::kBehindStore);
    EXPECT_EQ(target_->read(LinearAddr{P::kCount}, 1).at(0), i + 1);
  }
  EXPECT_EQ(target_->step_in_range(LinearAddr{P::kStore}, 9, {}).why, Why::moved);
  EXPECT_EQ(here(), P::kBehindLoop);
}

TEST_F(DebugTargetTest, ReadsAndAccessesAreToldAsWritesAre) {
  for (const StopKind kind : {StopKind::read_watchpoint, StopKind::access_watchpoint}) {
    target_->timeline().seek({});
    go_to(P::kBehindLoop);
    watch(P::kCount + 1, 1, kind);
    expect_watchpoint(target_->step(), P::kCount + 1, kind);
    EXPECT_EQ(here(), P::kBehindRead);
    expect_watchpoint(target_->step_back(), P::kCount + 1, kind);
    EXPECT_EQ(here(), P::kBehindLoop);
    target_->remove(kind, LinearAddr{P::kCount + 1}, 1);
  }
  watch(P::kCount, 4);
  EXPECT_EQ(target_->step().why, Why::moved) << "a read is no write";
}

TEST_F(DebugTargetTest, EachIterationOfAStringIsAStepOfItsOwn) {
  go_to(P::kString);
  watch(P::kFilled + 8, 4);
  EXPECT_EQ(target_->step().why, Why::moved);
  EXPECT_EQ(target_->step().why, Why::moved);
  expect_watchpoint(target_->step(), P::kFilled + 8);
  const Position behind = target_->timeline().position();
  EXPECT_EQ(behind.iteration, 3u);
  EXPECT_EQ(target_->step_in_range(LinearAddr{P::kString}, 2, {}).why, Why::moved);
  EXPECT_EQ(here(), P::kFault);
  expect_watchpoint(target_->go_back({}), P::kFilled + 8);
  EXPECT_EQ(target_->timeline().position().iteration, 2u);
  expect_watchpoint(target_->step_in_range(LinearAddr{P::kString}, 2, {}), P::kFilled + 8);
  EXPECT_EQ(target_->timeline().position(), behind);
}

TEST_F(DebugTargetTest, AFaultsFrameAndItsHandlersStoresAreMet) {
  go_to(P::kFault);
  watch(P::kStack - 4, 4);
  watch(P::kCount, 4);
  expect_watchpoint(target_->step(), P::kStack - 4);
  EXPECT_EQ(here(), P::kHandler);
  expect_watchpoint(target_->step(), P::kCount);
  EXPECT_EQ(here(), P::kBehindHandlersStore);
  expect_watchpoint(target_->step_back(), P::kCount);
  EXPECT_EQ(here(), P::kHandler);
  expect_watchpoint(target_->step_back(), P::kStack - 4);
  EXPECT_EQ(here(), P::kFault);
}

/// Watchpoints met by one instruction, that no address has in common: each is told, at one place.
TEST_F(DebugTargetTest, SeveralAtOneInstructionAreToldOneAfterTheOther) {
  go_to(P::kBehindRead);
  for (const bool steps : {false, true}) {
    const auto on = [&] { return steps ? target_->step() : target_->go_on({}); };
    const auto back = [&] { return steps ? target_->step_back() : target_->go_back({}); };
    watch(P::kWide, 4);
    watch(P::kWide + 12, 4);
    watch(P::kWide + 20, 4);
    expect_watchpoint(on(), P::kWide);
    EXPECT_EQ(here(), P::kBehindWide);
    // As gdb does whenever it stops.
    remove(P::kWide + 12, 4);
    watch(P::kWide + 12, 4);
    expect_watchpoint(on(), P::kWide + 12);
    EXPECT_EQ(here(), P::kBehindWide);
    // The other way round.
    expect_watchpoint(back(), P::kWide + 12);
    EXPECT_EQ(here(), P::kBehindRead);
    expect_watchpoint(back(), P::kWide);
    EXPECT_EQ(here(), P::kBehindRead);
    expect_watchpoint(on(), P::kWide);
    remove(P::kWide + 12, 4);
    EXPECT_NE(on().why, Why::watchpoint) << "one that is gone is told no more";
    remove(P::kWide, 4);
    remove(P::kWide + 20, 4);
    target_->timeline().seek({});
    go_to(P::kBehindRead);
  }
}

/// gdb looks at every watchpoint that has the address in it.
TEST_F(DebugTargetTest, OneAddressTellsAllThatHaveIt) {
  go_to(P::kBehindRead);
  watch(P::kWide, 8);
  watch(P::kWide + 2, 1);
  watch(P::kWide + 2, 4, StopKind::access_watchpoint);
  const MoveEnd end = target_->step();
  ASSERT_EQ(end.why, Why::watchpoint);
  EXPECT_EQ(end.watched, LinearAddr{P::kWide + 2});
  EXPECT_EQ(here(), P::kBehindWide);
  EXPECT_EQ(target_->step().why, Why::moved);
}

/// gdb passes over a write that changes nothing: no move may end for it where it began.
TEST_F(DebugTargetTest, OfSeveralThoseThatChangeAreTold) {
  P program;
  for (std::uint32_t i = 0; i < 4; ++i) program.recording().image.set(PhysAddr{P::kWide + i}, 0);
  program.store(path("other.citcat"));
  const RecordingFile file = RecordingFile::open(path("other.citcat"));
  target_.emplace(file, ComparisonPolicy{}, false);
  go_to(P::kBehindRead);
  watch(P::kWide, 4);
  watch(P::kWide + 12, 4);
  expect_watchpoint(target_->step(), P::kWide + 12);
  EXPECT_EQ(target_->step().why, Why::moved);
}

TEST_F(DebugTargetTest, WhatIsUntoldIsForgottenWhereTheMachineIsPutElsewhere) {
  go_to(P::kBehindRead);
  watch(P::kWide, 4);
  watch(P::kWide + 12, 4);
  expect_watchpoint(target_->step(), P::kWide);
  const Position there = target_->timeline().position();
  target_->timeline().seek({there.instruction + 1, 0});
  EXPECT_EQ(target_->step().why, Why::moved);
}

}  // namespace
}  // namespace citcat::test
