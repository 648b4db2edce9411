// Port accesses against the transactions that show them.

#include "replay/verify/port_matcher.h"

#include <gtest/gtest.h>

#include "unit/replay/verify/bus_transactions.h"

namespace citcat::test {
namespace {

class PortMatcherTest : public testing::Test {
 protected:
  /// The replay makes the access at instruction 5: what is wrong with it, or nothing.
  std::string make(const PortUse& use) {
    PortAccess access = ports_.begin(use);
    while (!access.complete()) {
      const auto mismatch = ports_.observe(access, use, {5, 0}, result_);
      if (mismatch) return mismatch->reason;
    }
    return "";
  }
  static BusModel bus_of(std::uint32_t bytes) {
    BusModel bus;
    bus.bus_bytes = bytes;
    return bus;
  }

  PortMatcher ports_{bus_of(2), CpuModel::i386};
  ComparisonResult result_;
};

TEST_F(PortMatcherTest, AWriteAgreesInPortValueAndInstruction) {
  ports_.expect(counted(BusOp::io_write, 0x80, {0x12}, 5));
  EXPECT_EQ(make({BusOp::io_write, 0x80, 1, 0x12}), "");
  EXPECT_EQ(result_.totals.io_writes.checked, 1u);
  EXPECT_EQ(result_.totals.io_writes.equal, 1u);
  EXPECT_EQ(ports_.waiting(), 0u);
}

TEST_F(PortMatcherTest, AnotherValueIsAMismatchThatShowsTheTransaction) {
  ports_.expect(counted(BusOp::io_write, 0x80, {0x12}, 5));
  const PortUse use{BusOp::io_write, 0x80, 1, 0x13};
  PortAccess access = ports_.begin(use);
  const auto mismatch = ports_.observe(access, use, {5, 0}, result_);
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->expected->data[0], 0x12);
  EXPECT_EQ(mismatch->found, "write of 1 bytes at port 0080 = 13");
  EXPECT_EQ(result_.totals.io_writes.checked, 1u);
  EXPECT_EQ(result_.totals.io_writes.equal, 0u);
}

TEST_F(PortMatcherTest, AWriteByAnotherInstructionIsAMismatch) {
  ports_.expect(counted(BusOp::io_write, 0x80, {0x12}, 4));
  EXPECT_EQ(make({BusOp::io_write, 0x80, 1, 0x12}),
            "a port is written at another instruction than in the capture");
}

TEST_F(PortMatcherTest, AnAccessWiderThanTheBusIsComparedPartByPart) {
  ports_.expect(counted(BusOp::io_write, 0x80, {0x78, 0x56}, 5));
  ports_.expect(counted(BusOp::io_write, 0x82, {0x34, 0x12}, 5));
  EXPECT_EQ(make({BusOp::io_write, 0x80, 4, 0x12345678}), "");
  EXPECT_EQ(result_.totals.io_writes.equal, 2u);
}

TEST_F(PortMatcherTest, OfAReadThePortIsComparedAndNotTheValue) {
  ports_.expect(counted(BusOp::io_read, 0x60, {0x1c}, 5));
  ports_.expect(counted(BusOp::io_read, 0x61, {0x1c}, 5));
  EXPECT_EQ(make({BusOp::io_read, 0x60, 1, 0}), "");
  EXPECT_EQ(make({BusOp::io_read, 0x62, 1, 0}),
            "the replay accesses another port than the processor did");
}

TEST_F(PortMatcherTest, AnAccessThatTheBusDoesNotShowIsNotCounted) {
  EXPECT_EQ(make({BusOp::io_read, 0x60, 1, 0}),
            "the replay accesses a port where the processor did not");
  EXPECT_EQ(result_.totals.io_reads.checked, 0u);
}

TEST_F(PortMatcherTest, WhatIsLeftBeforeTheEndIsAMismatch) {
  ports_.expect(counted(BusOp::io_read, 0x60, {0}, 7));
  EXPECT_FALSE(ports_.left_before({7, 0}));
  EXPECT_TRUE(ports_.left_before({8, 0}));
}

TEST_F(PortMatcherTest, ACopyGoesOnByItself) {
  ports_.expect(counted(BusOp::io_read, 0x60, {0}, 5));
  const PortMatcher copy = ports_;
  EXPECT_EQ(make({BusOp::io_read, 0x60, 1, 0}), "");
  EXPECT_EQ(ports_.due(), nullptr);
  ports_ = copy;
  ASSERT_NE(ports_.due(), nullptr);
  EXPECT_EQ(ports_.due()->address, PhysAddr{0x60});
}

}  // namespace
}  // namespace citcat::test
