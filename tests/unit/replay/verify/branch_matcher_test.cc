// Where the hardware says that instructions began.

#include "replay/verify/branch_matcher.h"

#include <gtest/gtest.h>

#include "replay/verify/comparison_policy.h"
#include "unit/replay/verify/bus_transactions.h"

namespace citcat::test {
namespace {

class BranchMatcherTest : public testing::Test {
 protected:
  /// A message that tells of a branch to one of four bytes.
  void message(std::uint32_t target) {
    branches_.expect(uncounted(counted(BusOp::instruction_start, target, 4, 0, kBranchTarget)));
  }
  /// An instruction of two bytes begins at `linear`.
  std::optional<Mismatch> run(std::uint32_t linear, bool branches = false) {
    DecodedInstruction info;
    info.length = 2;
    info.control_flow = branches;
    ExecutedInstruction e;
    e.info = &info;
    e.linear = LinearAddr{linear};
    e.offset = linear - 0x10000;
    return branches_.observe(e, {now_++, 0}, result_);
  }

  BranchMatcher branches_;
  ComparisonResult result_;
  std::uint64_t now_ = 0;
};

TEST_F(BranchMatcherTest, AReportedInstructionAgreesInAddressAndBytes) {
  const std::array<std::uint8_t, 2> bytes{0xe4, 0x60};
  branches_.expect(counted(BusOp::instruction_start, 0xffff0, {0xe4}, 0));
  branches_.expect(counted(BusOp::instruction_start, 0xffff2, {0xe4}, 0));
  EXPECT_FALSE(branches_.observe({PhysAddr{0xffff0}, bytes, false}, result_));
  const auto mismatch = branches_.observe({PhysAddr{0xffff3}, bytes, false}, result_);
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->found, "instruction at 000ffff3: e460");
  EXPECT_EQ(result_.totals.instructions.checked, 2u);
  EXPECT_EQ(result_.totals.instructions.equal, 1u);
}

TEST_F(BranchMatcherTest, APrefixIsComparedAndNotCounted) {
  const std::array<std::uint8_t, 2> bytes{0xf3, 0xa4};
  branches_.expect(counted(BusOp::instruction_start, 0x100, {0xf3}, 0, kPrefix));
  EXPECT_FALSE(branches_.observe({PhysAddr{0x100}, bytes, true}, result_));
  EXPECT_EQ(result_.totals.instructions.checked, 0u);
  EXPECT_TRUE(branches_.empty());
}

TEST_F(BranchMatcherTest, AMessageAgreesWithABranchBeforeOrAfterIt) {
  run(0x10000, true);
  run(0x10100);
  message(0x10100);
  EXPECT_FALSE(run(0x10102, true));
  message(0x10200);
  EXPECT_FALSE(run(0x10200));
  EXPECT_TRUE(branches_.empty());
  EXPECT_EQ(result_.totals.instructions.equal, 2u);
}

TEST_F(BranchMatcherTest, AMessageMayHaveTheOffsetAlone) {
  run(0x10000, true);
  run(0x10100);
  message(0x00100);
  run(0x10102);
  EXPECT_TRUE(branches_.empty());
}

TEST_F(BranchMatcherTest, AnInstructionThatFollowsTheOneBeforeIsNoBranch) {
  run(0x10000);
  message(0x10002);
  EXPECT_FALSE(run(0x10002));
  EXPECT_EQ(branches_.waiting(), 1u);
  EXPECT_TRUE(branches_.left_before({100, 0}, result_));
}

TEST_F(BranchMatcherTest, AMessageIsWaitedForOnlySoLong) {
  message(0x20000);
  EXPECT_FALSE(run(0x10000));
  now_ = kMaxIdle;
  const auto mismatch = run(0x10002);
  ASSERT_TRUE(mismatch);
  EXPECT_STREQ(mismatch->reason, "the processor took a branch that the replay did not");
}

TEST_F(BranchMatcherTest, AMessageLongBeforeWhatAgreedHasBeenMissed) {
  message(0x20000);
  result_.last_agreed = 1024;
  EXPECT_FALSE(run(0x10000));
  result_.last_agreed = 1025;
  EXPECT_TRUE(run(0x10002));
}

}  // namespace
}  // namespace citcat::test
