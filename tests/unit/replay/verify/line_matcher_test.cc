// Lines that were written back, and what memory holds in the meantime.

#include "replay/verify/line_matcher.h"

#include <gtest/gtest.h>

#include "unit/replay/verify/bus_transactions.h"
#include "unit/replay/verify/idle_machine.h"

namespace citcat::test {
namespace {

constexpr std::uint32_t kMatchedLine = 0x1010;

class LineMatcherTest : public testing::Test {
 protected:
  /// Four bytes at kMatchedLine, as memory holds them but for the first.
  static BusTransaction line(std::uint8_t first, std::uint64_t at) {
    return counted(BusOp::data_write, kMatchedLine, {first, 0x11, 0x12, 0x13}, at, kWriteBack);
  }
  std::size_t agreed_through(std::uint64_t next) {
    std::size_t agreed = 0;
    lines_.observe_through({next, 0}, machine_.memory(),
                           [&](const LineMatcher::Pending&) { ++agreed; });
    return agreed;
  }
  std::size_t agreed_in_window() {
    std::size_t agreed = 0;
    lines_.observe_window(window_of(PhysAddr{kMatchedLine}), machine_.memory(),
                          [&](const LineMatcher::Pending&) { ++agreed; });
    return agreed;
  }

  IdleMachine machine_;
  LineMatcher lines_;
};

TEST_F(LineMatcherTest, ALineAgreesOnceMemoryHoldsIt) {
  lines_.expect(line(0x77, 5), 1);
  EXPECT_EQ(agreed_through(5), 0u);
  machine_.store(kMatchedLine, {0x77});
  EXPECT_EQ(agreed_through(4), 0u) << "it is still in the cache";
  EXPECT_EQ(agreed_through(5), 1u);
  EXPECT_TRUE(lines_.empty());
}

TEST_F(LineMatcherTest, EachByteAgreesForItself) {
  lines_.expect(line(0x77, 5), 1);
  machine_.store(kMatchedLine, {0x77, 0xee});
  EXPECT_EQ(agreed_through(5), 0u);
  machine_.store(kMatchedLine, {0xee, 0x11});
  EXPECT_EQ(agreed_through(5), 1u);
}

TEST_F(LineMatcherTest, ALineIsDueWithTheInstructionThatGaveItUp) {
  lines_.expect(line(0x77, 5), 1);
  lines_.expect(line(0x78, 6), 1);
  EXPECT_EQ(lines_.due({4, 0}, false), 0u);
  EXPECT_EQ(lines_.due({5, 0}, false), 1u);
  EXPECT_EQ(lines_.due({5, 0}, true), 0u) << "iterations are counted from zero again";
  EXPECT_EQ(lines_.due({6, 0}, true), 1u);
  EXPECT_EQ(lines_.through(5), 1u);
  EXPECT_EQ(lines_.through(6), 2u);
}

TEST_F(LineMatcherTest, WhatIsOverwrittenIsExcusedWhereItMayDiffer) {
  lines_.expect(line(0x77, 5), 1);
  agreed_through(5);
  lines_.excuse({PhysAddr{kMatchedLine}, 1, 0x76, 0x02}, {5, 0});
  EXPECT_EQ(lines_[0].unmatched, 1u) << "bit 0 differs too";
  lines_.excuse({PhysAddr{kMatchedLine}, 1, 0x76, 0x01}, {4, 0});
  EXPECT_EQ(lines_[0].unmatched, 1u) << "it was given up later";
  lines_.excuse({PhysAddr{kMatchedLine}, 1, 0x76, 0x01}, {5, 0});
  EXPECT_EQ(lines_[0].unmatched, 0u);
}

TEST_F(LineMatcherTest, FourBytesAreExcusedEachByItself) {
  lines_.expect(counted(BusOp::data_write, 0x2000, {1, 2, 3, 4}, 5, kWriteBack), 1);
  lines_.excuse({PhysAddr{0x2000}, 4, 0x04ff0200, 0x00000001}, {5, 0});
  EXPECT_EQ(lines_[0].unmatched, 0b100u);
}

TEST_F(LineMatcherTest, WithoutCountsLinesOfAWindowAgreeInTheirOrder) {
  lines_.expect(uncounted(line(0x10, 0)), 1);
  lines_.expect(uncounted(line(0x77, 0)), 1);
  lines_.expect(uncounted(line(0x10, 0)), 1);
  EXPECT_EQ(agreed_in_window(), 1u);
  machine_.store(kMatchedLine, {0x77});
  EXPECT_EQ(agreed_in_window(), 1u);
  EXPECT_EQ(lines_.any_in_windows().data[0], 0x10);
  machine_.store(kMatchedLine, {0x10});
  EXPECT_EQ(agreed_in_window(), 1u);
  EXPECT_FALSE(lines_.has_windows());
}

TEST_F(LineMatcherTest, AForgivenLineIsNotWaitedFor) {
  lines_.expect(uncounted(line(0x77, 0)), 1);
  lines_.forgive(PhysAddr{kMatchedLine + 8});
  EXPECT_TRUE(lines_.has_windows()) << "not of this line";
  lines_.forgive(PhysAddr{kMatchedLine + 3});
  EXPECT_FALSE(lines_.has_windows());
}

}  // namespace
}  // namespace citcat::test
