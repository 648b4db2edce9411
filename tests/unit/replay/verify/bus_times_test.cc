#include "replay/verify/bus_times.h"

#include <gtest/gtest.h>

namespace citcat {
namespace {

constexpr Position kFirstClock{7, 0}, kSecond{8, 0};

BusTransaction at(std::uint64_t clock, BusOp op = BusOp::data_write) {
  BusTransaction t;
  t.op = op;
  t.clock = clock;
  t.flags = kClockKnown;
  return t;
}

BusTransaction counted(std::uint64_t clock, std::uint64_t instruction) {
  BusTransaction t = at(clock, BusOp::data_read);
  t.position = {instruction, 0};
  t.flags |= kPositionKnown;
  return t;
}

TEST(BusTimes, AnInstructionIsWhenTheBusBeganToShowIt) {
  BusTimes times;
  times.agreed(at(120), kFirstClock);
  times.agreed(at(100), kFirstClock);
  EXPECT_EQ(times.take(kFirstClock), 100);
  EXPECT_EQ(times.take(kFirstClock), std::nullopt);
}

TEST(BusTimes, AStartThatPinsReportTellsMoreThanAnythingElse) {
  BusTimes times;
  times.agreed(at(100), kFirstClock);
  times.started(at(110), kFirstClock);
  times.started(at(112), kFirstClock);  // behind a prefix
  times.agreed(at(105), kFirstClock);
  EXPECT_EQ(times.take(kFirstClock), 110);
}

TEST(BusTimes, WhatADeliveryPushesTellsNothingOfTheInstructionBehindIt) {
  BusTimes times;
  times.agreed(at(100), kFirstClock);
  times.forget();
  EXPECT_EQ(times.take(kFirstClock), std::nullopt);
}

TEST(BusTimes, OfWhatNoTransactionBelongsToNothingIsKnown) {
  BusTimes times;
  times.agreed(at(100), kFirstClock);
  EXPECT_EQ(times.at(kSecond), std::nullopt);
}

TEST(BusTimes, ATransactionWithoutAClockTellsNothing) {
  BusTimes times;
  BusTransaction t = at(100);
  t.flags = 0;
  times.agreed(t, kFirstClock);
  EXPECT_EQ(times.at(kFirstClock), std::nullopt);
}

TEST(BusTimes, WhatIsCountedToAnInstructionIsItsOwn) {
  BusTimes times;
  times.captured(counted(90, 6));
  times.captured(counted(100, 7));
  times.captured(counted(110, 8));
  EXPECT_EQ(times.take(kFirstClock), 100);
  EXPECT_EQ(times.take(kSecond), 110);
}

TEST(BusTimes, AWriteBackTellsNothingOfTheInstructionThatItIsCountedTo) {
  BusTimes times;
  BusTransaction line = counted(95, 7);
  line.op = BusOp::data_write;
  line.flags |= kWriteBack;
  times.captured(line);
  EXPECT_EQ(times.at(kFirstClock), std::nullopt);
}

TEST(BusTimes, AnInterruptIsWhenItWasAcknowledged) {
  BusTimes times;
  times.captured(at(100, BusOp::interrupt_acknowledge));
  times.captured(at(200, BusOp::interrupt_acknowledge));
  times.interrupted(kFirstClock);
  EXPECT_EQ(times.take(kFirstClock), 100);
  times.interrupted(kSecond);
  EXPECT_EQ(times.take(kSecond), 200);
}

TEST(BusTimes, AnAcknowledgeThatIsReadLateIsNotTheNextInterrupts) {
  BusTimes times;
  times.interrupted(kFirstClock);
  EXPECT_EQ(times.take(kFirstClock), std::nullopt);
  times.captured(at(100, BusOp::interrupt_acknowledge));
  times.captured(at(200, BusOp::interrupt_acknowledge));
  times.interrupted(kSecond);
  EXPECT_EQ(times.take(kSecond), 200);
}

}  // namespace
}  // namespace citcat
