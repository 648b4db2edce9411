// What reads and fills tell: each case is a few accesses of one instruction on both sides.

#include "replay/read_check.h"

#include <gtest/gtest.h>

#include "replay/replayer.h"

namespace citcat::test {
namespace {

BusTransaction make(BusOp op, std::uint32_t address, std::uint8_t size, std::uint64_t at,
                    std::uint16_t flags = 0) {
  BusTransaction t;
  t.op = op;
  t.address = PhysAddr{address};
  t.size = size;
  t.position = {at, 0};
  t.flags = static_cast<std::uint16_t>(flags | kPositionKnown);
  return t;
}

class ReadCheckTest : public testing::Test {
 protected:
  ReadCheckTest() {
    recording_.initial.model = CpuModel::p6;
    recording_.initial.ram_bytes = 0x20000;
    for (std::uint32_t i = 0; i < 0x100; ++i) {
      recording_.image.set(PhysAddr{0x1000 + i}, static_cast<std::uint8_t>(i));
    }
  }
  void begin(CacheForm form) {
    recording_.bus.form = form;
    replayer_ = std::make_unique<Replayer>(recording_, nullptr, ReplayOptions{});
    check_ = std::make_unique<ReadCheck>(recording_);
    check_->skip(0);
  }
  Memory& memory() { return replayer_->machine().memory(); }
  bool agrees() { return !check_->settle(1, memory()).has_value(); }

  Recording recording_;
  std::unique_ptr<Replayer> replayer_;
  std::unique_ptr<ReadCheck> check_;
};

TEST_F(ReadCheckTest, ReadsAgreeWhateverTheirOrderWithinTheInstruction) {
  begin(CacheForm::none);
  check_->captured_read(make(BusOp::data_read, 0x1000, 4, 0));
  check_->captured_read(make(BusOp::data_read, 0x1010, 2, 0));
  check_->read(PhysAddr{0x1010}, 2, AccessKind::data, memory());
  check_->read(PhysAddr{0x1000}, 4, AccessKind::data, memory());
  EXPECT_TRUE(agrees());
}

TEST_F(ReadCheckTest, WhatTheBusShowedBeforeTheFirstAccessIsNotForgotten) {
  recording_.bus.form = CacheForm::none;
  replayer_ = std::make_unique<Replayer>(recording_, nullptr, ReplayOptions{});
  check_ = std::make_unique<ReadCheck>(recording_);
  check_->captured_read(make(BusOp::data_read, 0x1000, 4, 0));
  check_->skip(0);
  check_->read(PhysAddr{0x1000}, 4, AccessKind::data, memory());
  EXPECT_TRUE(agrees());
}

TEST_F(ReadCheckTest, AReadElsewhereIsNoticed) {
  begin(CacheForm::none);
  check_->captured_read(make(BusOp::data_read, 0x1000, 4, 0));
  check_->read(PhysAddr{0x1004}, 4, AccessKind::data, memory());
  EXPECT_FALSE(agrees());
}

TEST_F(ReadCheckTest, AReadTooManyOnEitherSideIsNoticed) {
  begin(CacheForm::none);
  check_->captured_read(make(BusOp::data_read, 0x1000, 4, 0));
  EXPECT_FALSE(agrees());
  begin(CacheForm::none);
  check_->read(PhysAddr{0x1000}, 4, AccessKind::data, memory());
  EXPECT_FALSE(agrees());
}

TEST_F(ReadCheckTest, APageWalkOfTheReplayAloneIsNone) {
  begin(CacheForm::none);
  check_->read(PhysAddr{0x1000}, 4, AccessKind::walk, memory());
  EXPECT_TRUE(agrees());
}

TEST_F(ReadCheckTest, AReadOfWhatIsOverwrittenAnywayIsAllowed) {
  begin(CacheForm::none);
  check_->captured_read(make(BusOp::data_read, 0x1000, 4, 0));
  check_->stored(PhysAddr{0x1000}, 4, memory());
  EXPECT_TRUE(agrees());
}

TEST_F(ReadCheckTest, CodeThatWasNotFetchedIsNoticed) {
  begin(CacheForm::none);
  check_->captured_read(make(BusOp::code_read, 0x1000, 4, 0));
  check_->fetched(PhysAddr{0x1002}, 2, memory());
  EXPECT_TRUE(agrees());
  check_->fetched(PhysAddr{0x1003}, 2, memory());
  EXPECT_TRUE(check_->settle(2, memory()).has_value());
}

TEST_F(ReadCheckTest, AFillIsOfALineThatTheInstructionTouches) {
  begin(CacheForm::write_back);
  check_->captured_read(make(BusOp::data_read, 0x1020, 16, 0, kLine));
  check_->captured_read(make(BusOp::data_read, 0x1030, 16, 0, kLine));
  check_->read(PhysAddr{0x1034}, 4, AccessKind::data, memory());
  EXPECT_TRUE(agrees());
  check_->captured_read(make(BusOp::data_read, 0x1040, 16, 1, kLine));
  check_->read(PhysAddr{0x1034}, 4, AccessKind::data, memory());
  EXPECT_TRUE(check_->settle(2, memory()).has_value());
}

TEST_F(ReadCheckTest, AFillWithOtherBytesThanMemoryHoldsIsNoticed) {
  begin(CacheForm::write_back);
  const std::uint8_t wrong = 0xee;
  memory().store(PhysAddr{0x1025}, {&wrong, 1});
  check_->captured_read(make(BusOp::data_read, 0x1020, 16, 0, kLine));
  check_->read(PhysAddr{0x1020}, 4, AccessKind::data, memory());
  EXPECT_FALSE(agrees());
}

TEST_F(ReadCheckTest, AFillForAStoreShowsWhatTheStoreHasChangedSince) {
  begin(CacheForm::write_back);
  check_->captured_read(make(BusOp::data_read, 0x1020, 16, 0, kLine | kStoreFill));
  const std::uint8_t stored = 0xee;
  memory().store(PhysAddr{0x1025}, {&stored, 1});
  check_->stored(PhysAddr{0x1025}, 1, memory());
  EXPECT_TRUE(agrees());
}

}  // namespace
}  // namespace citcat::test
