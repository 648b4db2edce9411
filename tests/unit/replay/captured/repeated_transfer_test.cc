// What a capture shows twice in a row, and what it may.

#include "replay/captured/repeated_transfer.h"

#include <gtest/gtest.h>

#include "unit/replay/verify/bus_transactions.h"

namespace citcat::test {
namespace {

constexpr std::uint32_t kPlace = 0x1000;

class RepeatedTransferTest : public testing::Test {
 protected:
  /// Whether the second of them repeats the first.
  static bool repeats(const BusTransaction& first, const BusTransaction& second) {
    RepeatedTransfer transfers;
    EXPECT_FALSE(transfers.observe(first));
    return transfers.observe(second);
  }
  static BusTransaction fill(std::uint32_t address, std::uint64_t at = 0) {
    return counted(BusOp::data_read, address, 16, at, kLine);
  }
};

TEST_F(RepeatedTransferTest, ALineIsFilledAndGivenUpOnceByAnInstruction) {
  EXPECT_TRUE(repeats(fill(kPlace), fill(kPlace)));
  EXPECT_FALSE(repeats(fill(kPlace), fill(kPlace, 1)));
  const BusTransaction back = counted(BusOp::data_write, kPlace, 16, 0, kLine | kWriteBack);
  EXPECT_TRUE(repeats(back, back));
}

TEST_F(RepeatedTransferTest, CodeIsFetchedOnceByAnInstruction) {
  const BusTransaction code = counted(BusOp::code_read, kPlace, 4, 3);
  EXPECT_TRUE(repeats(code, code));
  EXPECT_FALSE(repeats(code, counted(BusOp::code_read, kPlace + 4, 4, 3)));
}

TEST_F(RepeatedTransferTest, OfALineInPartsNoneComesTwice) {
  RepeatedTransfer transfers;
  EXPECT_FALSE(transfers.observe(fill(kPlace)));
  EXPECT_FALSE(transfers.observe(fill(kPlace + 16)));
  EXPECT_TRUE(transfers.observe(fill(kPlace)));
}

TEST_F(RepeatedTransferTest, AnythingBetweenMayHaveTakenItAway) {
  RepeatedTransfer transfers;
  EXPECT_FALSE(transfers.observe(fill(kPlace)));
  EXPECT_FALSE(transfers.observe(fill(kPlace + 0x1000)));
  EXPECT_FALSE(transfers.observe(fill(kPlace)));
  EXPECT_FALSE(transfers.observe(counted(BusOp::data_write, kPlace, 4, 0)));
  EXPECT_FALSE(transfers.observe(fill(kPlace)));
}

TEST_F(RepeatedTransferTest, SinglesAreReadAndWrittenAsOftenAsTheInstructionSays) {
  const BusTransaction read = counted(BusOp::data_read, kPlace, 4, 0);
  EXPECT_FALSE(repeats(read, read));
  const BusTransaction write = counted(BusOp::data_write, kPlace, 4, 0);
  EXPECT_FALSE(repeats(write, write));
}

TEST_F(RepeatedTransferTest, IterationsOfARepeatEachMayMoveALine) {
  BusTransaction second = fill(kPlace);
  second.position.iteration = 1;
  EXPECT_FALSE(repeats(fill(kPlace), second));
}

TEST_F(RepeatedTransferTest, WithoutCountsNothingIsSaid) {
  EXPECT_FALSE(repeats(uncounted(fill(kPlace)), uncounted(fill(kPlace))));
}

}  // namespace
}  // namespace citcat::test
