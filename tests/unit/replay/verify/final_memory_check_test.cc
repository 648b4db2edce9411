// What counts as a difference of memory at the end.

#include "replay/verify/final_memory_check.h"

#include <gtest/gtest.h>

#include "replay/session/replayer.h"
#include "unit/replay/verify/bus_transactions.h"

namespace citcat::test {
namespace {

class FinalMemoryCheckTest : public testing::Test {
 protected:
  FinalMemoryCheckTest() {
    recording_.initial.model = CpuModel::p6;
    recording_.initial.ram_bytes = 0x10000;
    for (std::uint32_t i = 0; i < 0x80; ++i) put(recording_.image, 0x1000 + i, 0);
  }
  static void put(MemoryImage& image, std::uint32_t address, std::uint8_t byte) {
    image.set(PhysAddr{address}, byte);
  }
  /// `check` of this recording, and memory as at its beginning.
  void begin(FinalMemoryCheck::Options options) {
    check_.emplace(recording_.image, recording_, options);
    replayer_ = std::make_unique<Replayer>(recording_, nullptr, ReplayOptions{});
  }
  FinalMemory compare(const MemoryImage* captured) const {
    return check_->compare(replayer_->machine().memory(), captured,
                           [](PhysAddr a, std::uint8_t) { return a.value == 0x1070; });
  }
  void store(std::uint32_t address, std::uint8_t byte) {
    replayer_->machine().memory().store(PhysAddr{address}, {&byte, 1});
  }

  Recording recording_;
  std::optional<FinalMemoryCheck> check_;
  std::unique_ptr<Replayer> replayer_;
};

TEST_F(FinalMemoryCheckTest, TheWritesOnTheBusAreWhatMemoryHasToHold) {
  begin({.keeps_model = true});
  check_->write_agreed(counted(BusOp::data_write, 0x1004, {0x12}, 1));
  EXPECT_EQ(compare(nullptr).different, 1u);
  store(0x1004, 0x12);
  EXPECT_EQ(compare(nullptr).different, 0u);
  EXPECT_EQ(compare(nullptr).bytes, 0x80u);
}

TEST_F(FinalMemoryCheckTest, WritesOfOthersAreModelledInTheOrderOfTheBus) {
  ExternalWrite w;
  w.address = PhysAddr{0x1004};
  w.data = {0x77};
  w.transaction = 5;
  recording_.external_writes = {w};
  begin({.keeps_model = true});
  BusTransaction t = counted(BusOp::data_write, 0x1004, {0x12}, 1);
  t.index = 4;
  check_->write_agreed(t);
  check_->end();
  store(0x1004, 0x77);
  EXPECT_EQ(compare(nullptr).different, 0u);
}

TEST_F(FinalMemoryCheckTest, WithoutAModelThereIsNothingToCompareWith) {
  begin({});
  EXPECT_EQ(compare(nullptr).bytes, 0u);
}

TEST_F(FinalMemoryCheckTest, ALineTheBusConfirmedWasChangedByAnother) {
  begin({.knows_lines = true});
  MemoryImage captured = recording_.image.clone();
  put(captured, 0x1004, 0x12);
  EXPECT_EQ(compare(&captured).external_unseen, 1u);
  check_->stored(PhysAddr{0x1008});
  EXPECT_EQ(compare(&captured).different, 1u);
  check_->line_agreed(counted(BusOp::data_write, 0x1000, 32, 9, kWriteBack));
  EXPECT_EQ(compare(&captured).external_unseen, 1u);
}

TEST_F(FinalMemoryCheckTest, ADeviceIsNotComparedUnlessItIsReadBack) {
  begin({});
  MemoryImage captured = recording_.image.clone();
  put(captured, 0x1004, 0x12);
  check_->write_agreed(counted(BusOp::data_write, 0x1004, {0}, 1, kUncacheable));
  EXPECT_EQ(compare(&captured).device, 1u);
  check_->captured_read(counted(BusOp::data_read, 0x1004, 1, 2, kUncacheable));
  EXPECT_EQ(compare(&captured).different, 1u);
}

TEST_F(FinalMemoryCheckTest, WhatMayDifferIsTakenOver) {
  begin({});
  MemoryImage captured = recording_.image.clone();
  put(captured, 0x1070, 0x12);
  EXPECT_EQ(compare(&captured).adopted, 1u);
  EXPECT_EQ(compare(&captured).different, 0u);
}

TEST_F(FinalMemoryCheckTest, WhatTheLastInstructionStoresBehindTheCaptureIsLeftOut) {
  begin({});
  MemoryImage captured = recording_.image.clone();
  put(captured, 0x1004, 0x12);
  check_->stored_beyond_end(PhysAddr{0x1004});
  EXPECT_EQ(compare(&captured).bytes, 0x7fu);
  EXPECT_EQ(compare(&captured).different, 0u);
}

}  // namespace
}  // namespace citcat::test
