// Captured writes and the bytes that the replay stores.

#include "replay/verify/write_matcher.h"

#include <gtest/gtest.h>

#include <vector>

#include "unit/replay/verify/bus_transactions.h"

namespace citcat::test {
namespace {

class WriteMatcherTest : public testing::Test {
 protected:
  void expect(std::uint32_t address, std::initializer_list<std::uint8_t> bytes, std::uint64_t at) {
    writes_.expect(counted(BusOp::data_write, address, bytes, at));
  }
  WriteMatcher::Pending* find(std::uint32_t address, std::uint64_t at) {
    return writes_.find(PhysAddr{address}, {at, 0}, [] { return false; });
  }
  /// The byte is stored: whether a write waits for it.
  bool make(std::uint32_t address, std::uint64_t at) {
    WriteMatcher::Pending* const pending = find(address, at);
    if (pending != nullptr) WriteMatcher::observe(*pending, PhysAddr{address});
    return pending != nullptr;
  }

  WriteMatcher writes_;
};

TEST_F(WriteMatcherTest, AWriteIsMadeByteByByte) {
  expect(0x100, {1, 2}, 5);
  WriteMatcher::Pending* const pending = find(0x101, 5);
  ASSERT_NE(pending, nullptr);
  EXPECT_TRUE(pending->is_whole());
  EXPECT_FALSE(WriteMatcher::observe(*pending, PhysAddr{0x101}));
  EXPECT_FALSE(make(0x101, 5)) << "made already";
  EXPECT_FALSE(writes_.all_made());
  EXPECT_TRUE(WriteMatcher::observe(*pending, PhysAddr{0x100}));
  EXPECT_TRUE(writes_.all_made());
  writes_.drop_made();
  EXPECT_TRUE(writes_.empty());
}

TEST_F(WriteMatcherTest, AWriteOfALaterInstructionIsNotThisOnes) {
  expect(0x100, {1}, 6);
  EXPECT_EQ(find(0x100, 5), nullptr);
  EXPECT_NE(find(0x100, 6), nullptr);
}

TEST_F(WriteMatcherTest, MoreIsAskedForUntilTheWriteIsFound) {
  int asked = 0;
  const auto more = [&] {
    expect(0x100 + static_cast<std::uint32_t>(asked), {1}, 5);
    return ++asked < 10;
  };
  EXPECT_NE(writes_.find(PhysAddr{0x103}, {5, 0}, more), nullptr);
  EXPECT_EQ(asked, 4);
  EXPECT_TRUE(writes_.out_of_order());
}

TEST_F(WriteMatcherTest, AWriteIsSoughtOnlySoFarFromItsPlace) {
  std::uint32_t next = 0x1000;
  const auto more = [&] {
    expect(next++, {1}, 5);
    return true;
  };
  EXPECT_EQ(writes_.find(PhysAddr{0x100}, {5, 0}, more), nullptr);
  EXPECT_EQ(writes_.waiting(), WriteMatcher::kWindow);
}

TEST_F(WriteMatcherTest, OrderIsComparedWhereTheCaptureDoesNotCount) {
  writes_.expect(uncounted(counted(BusOp::data_write, 0x100, {1}, 0)));
  writes_.expect(uncounted(counted(BusOp::data_write, 0x200, {1}, 0)));
  const WriteMatcher::Pending* const second = find(0x200, 0);
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(writes_.out_of_order());
  const auto mismatch = writes_.observe_order(*second, PhysAddr{0x200}, 1);
  ASSERT_TRUE(mismatch && mismatch->expected);
  EXPECT_EQ(mismatch->expected->address, PhysAddr{0x100});
  EXPECT_EQ(mismatch->found, "write of 1 bytes at 00000200 = 01");
  EXPECT_TRUE(make(0x100, 0));
  EXPECT_FALSE(writes_.observe_order(*second, PhysAddr{0x200}, 1)) << "the first has been made";
}

TEST_F(WriteMatcherTest, TheOrderIsThatOfTheBusAgainWhenAllThatBeganIsMade) {
  expect(0x100, {1}, 5);
  expect(0x200, {1}, 5);
  expect(0x300, {1}, 6);
  EXPECT_TRUE(make(0x200, 5));
  writes_.drop_made();
  EXPECT_TRUE(writes_.out_of_order()) << "the first still waits";
  EXPECT_TRUE(make(0x100, 5));
  writes_.drop_made();
  EXPECT_EQ(writes_.waiting(), 1u);
  EXPECT_FALSE(writes_.out_of_order());
}

TEST_F(WriteMatcherTest, WithCountsAWriteIsDueWithItsInstruction) {
  expect(0x100, {1}, 5);
  EXPECT_FALSE(writes_.overdue({4, 0}));
  EXPECT_TRUE(writes_.overdue({5, 0}));
}

TEST_F(WriteMatcherTest, WithoutCountsItIsDueWhenALaterOneWasMade) {
  writes_.expect(uncounted(counted(BusOp::data_write, 0x100, {1}, 0)));
  writes_.expect(uncounted(counted(BusOp::data_write, 0x200, {1, 2}, 0)));
  EXPECT_FALSE(writes_.overdue({9, 0}));
  EXPECT_TRUE(make(0x200, 9));
  EXPECT_FALSE(writes_.overdue({9, 0})) << "half of it may be of the same instruction";
  EXPECT_TRUE(make(0x201, 9));
  EXPECT_TRUE(writes_.overdue({9, 0}));
}

TEST_F(WriteMatcherTest, WhatIsLeftIsTold) {
  expect(0x100, {1}, 5);
  expect(0x200, {1}, 6);
  EXPECT_TRUE(writes_.covers(PhysAddr{0x200}, {6, 0}));
  EXPECT_FALSE(writes_.covers(PhysAddr{0x200}, {5, 0})) << "it is of a later instruction";
  EXPECT_FALSE(writes_.covers(PhysAddr{0x201}, {6, 0}));
  EXPECT_TRUE(make(0x100, 5));
  ASSERT_NE(writes_.first_missing(), nullptr);
  EXPECT_EQ(writes_.first_missing()->address, PhysAddr{0x200});
  writes_.drop_made();
  EXPECT_FALSE(writes_.left_before({6, 0}));
  EXPECT_TRUE(writes_.left_before({7, 0}));
}

TEST_F(WriteMatcherTest, ACopyGoesOnByItself) {
  expect(0x100, {1, 2}, 5);
  const WriteMatcher copy = writes_;
  EXPECT_TRUE(make(0x100, 5));
  writes_ = copy;
  EXPECT_TRUE(make(0x100, 5));
}

}  // namespace
}  // namespace citcat::test
