// Fetches at pins, and the instructions that are reported between them.

#include "replay/verify/fetch_order.h"

#include <gtest/gtest.h>

#include "unit/replay/verify/bus_transactions.h"

namespace citcat::test {
namespace {

constexpr std::uint8_t kNop = 0x90, kPopCs = 0x0f;

class FetchOrderTest : public testing::Test {
 protected:
  void fetch(std::uint32_t address, std::uint8_t size = 1) {
    EXPECT_FALSE(order_.observe(uncounted(counted(BusOp::code_read, address, size, 0))));
  }
  /// Whether an instruction there contradicts what was fetched.
  bool contradicts(std::uint32_t address, std::uint8_t opcode = kNop) {
    return order_.observe(uncounted(counted(BusOp::instruction_start, address, {opcode}, 0)));
  }

  FetchOrder order_{0x7ffff};
};

TEST_F(FetchOrderTest, WhatFollowsMayBeExecutedAtAnyTime) {
  fetch(0x1000, 2);
  fetch(0x1002, 2);
  EXPECT_FALSE(contradicts(0x1000));
  EXPECT_FALSE(contradicts(0x1001));
}

TEST_F(FetchOrderTest, BehindAJumpTheTargetIsExecutedNext) {
  fetch(0x1000);
  fetch(0x2001);
  fetch(0x2002, 2);
  EXPECT_FALSE(contradicts(0x2001));
}

TEST_F(FetchOrderTest, WhatTheQueueStillHadIsNotExecutedAfterAFetchFromElsewhere) {
  fetch(0x1000);
  fetch(0x1001);
  EXPECT_FALSE(contradicts(0x1000));
  fetch(0x1001);  // stands there twice
  fetch(0x1002);
  fetch(0x1001);
  EXPECT_TRUE(contradicts(0x1002));
}

TEST_F(FetchOrderTest, AFetchThatIsMissingIsOneFromElsewhere) {
  fetch(0x1000);
  fetch(0x1002);
  EXPECT_TRUE(contradicts(0x1000));
}

TEST_F(FetchOrderTest, TheLastOfSeveralFetchesFromElsewhereCounts) {
  fetch(0x1000);
  fetch(0x2000);  // a jump, and an interrupt in front of its target
  fetch(0x3000);
  EXPECT_FALSE(contradicts(0x3000));
}

TEST_F(FetchOrderTest, CodeWrapsWithinItsSegmentAndWithTheAddressBits) {
  fetch(0x1ffff);
  fetch(0x10000);
  EXPECT_FALSE(contradicts(0x1ffff));
  FetchOrder order{0x7ffff};
  EXPECT_FALSE(order.observe(uncounted(counted(BusOp::code_read, 0x7ffff, 1, 0))));
  EXPECT_FALSE(order.observe(uncounted(counted(BusOp::code_read, 0x80000, 1, 0))));
  EXPECT_FALSE(order.observe(uncounted(counted(BusOp::instruction_start, 0x7ffff, {kNop}, 0))));
}

TEST_F(FetchOrderTest, ALoadOfCsLeavesTheQueueAsItIs) {
  fetch(0x1000);
  fetch(0x1001);
  EXPECT_FALSE(contradicts(0x1000, kPopCs));
  fetch(0x5002);
  EXPECT_FALSE(contradicts(0x1001));
}

}  // namespace
}  // namespace citcat::test
