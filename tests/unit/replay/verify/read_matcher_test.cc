// What reads and fills tell: each case is a few accesses of one instruction on both sides.

#include "replay/verify/read_matcher.h"

#include <gtest/gtest.h>

#include <array>
#include <span>

#include "replay/session/replayer.h"
#include "unit/replay/verify/bus_transactions.h"

namespace citcat::test {
namespace {

class ReadMatcherTest : public testing::Test {
 protected:
  ReadMatcherTest() {
    recording_.initial.model = CpuModel::p6;
    recording_.initial.ram_bytes = 0x20000;
    for (std::uint32_t i = 0; i < 0x100; ++i) {
      recording_.image.set(PhysAddr{0x1000 + i}, static_cast<std::uint8_t>(i));
    }
  }
  void begin(CacheForm form) {
    recording_.bus.form = form;
    replayer_ = std::make_unique<Replayer>(recording_, nullptr, ReplayOptions{});
    matcher_ = std::make_unique<ReadMatcher>(recording_, &recording_, false);
    matcher_->skip(0);
  }
  Memory& memory() { return replayer_->machine().memory(); }
  bool agrees() { return !matcher_->settle(1, memory()).has_value(); }

  Recording recording_;
  std::unique_ptr<Replayer> replayer_;
  std::unique_ptr<ReadMatcher> matcher_;
};

TEST_F(ReadMatcherTest, ReadsAgreeWhateverTheirOrderWithinTheInstruction) {
  begin(CacheForm::none);
  matcher_->expect(counted(BusOp::data_read, 0x1000, 4, 0));
  matcher_->expect(counted(BusOp::data_read, 0x1010, 2, 0));
  matcher_->read(PhysAddr{0x1010}, 2, AccessKind::data, memory());
  matcher_->read(PhysAddr{0x1000}, 4, AccessKind::data, memory());
  EXPECT_TRUE(agrees());
}

TEST_F(ReadMatcherTest, WhatTheBusShowedBeforeTheFirstAccessIsNotForgotten) {
  recording_.bus.form = CacheForm::none;
  replayer_ = std::make_unique<Replayer>(recording_, nullptr, ReplayOptions{});
  matcher_ = std::make_unique<ReadMatcher>(recording_, &recording_, false);
  matcher_->expect(counted(BusOp::data_read, 0x1000, 4, 0));
  matcher_->skip(0);
  matcher_->read(PhysAddr{0x1000}, 4, AccessKind::data, memory());
  EXPECT_TRUE(agrees());
}

TEST_F(ReadMatcherTest, AReadElsewhereIsNoticed) {
  begin(CacheForm::none);
  matcher_->expect(counted(BusOp::data_read, 0x1000, 4, 0));
  matcher_->read(PhysAddr{0x1004}, 4, AccessKind::data, memory());
  EXPECT_FALSE(agrees());
}

TEST_F(ReadMatcherTest, AReadTooManyOnEitherSideIsNoticed) {
  begin(CacheForm::none);
  matcher_->expect(counted(BusOp::data_read, 0x1000, 4, 0));
  EXPECT_FALSE(agrees());
  begin(CacheForm::none);
  matcher_->read(PhysAddr{0x1000}, 4, AccessKind::data, memory());
  EXPECT_FALSE(agrees());
}

/// A processor may read what it is about to overwrite; what it reads anyway it does not read twice.
TEST_F(ReadMatcherTest, AReadTwiceIsNoticedWhereTheInstructionReadsOnceAndStores) {
  for (const int times : {1, 2}) {
    begin(CacheForm::none);
    for (int i = 0; i < times; ++i) matcher_->expect(counted(BusOp::data_read, 0x1000, 4, 0));
    matcher_->read(PhysAddr{0x1000}, 4, AccessKind::data, memory());
    matcher_->stored(PhysAddr{0x1000}, 4, memory());
    EXPECT_EQ(agrees(), times == 1);
  }
  begin(CacheForm::none);
  matcher_->expect(counted(BusOp::data_read, 0x1000, 4, 0));
  matcher_->stored(PhysAddr{0x1000}, 4, memory());
  EXPECT_TRUE(agrees());
}

TEST_F(ReadMatcherTest, WithACacheWhatIsNotCachedIsReadOnceByAnAccess) {
  for (const int times : {1, 2}) {
    begin(CacheForm::write_through);
    for (int i = 0; i < times; ++i) {
      matcher_->expect(counted(BusOp::data_read, 0x1002, 2, 0, kUncacheable));
      matcher_->expect(counted(BusOp::data_read, 0x1004, 2, 0, kUncacheable));
    }
    matcher_->read(PhysAddr{0x1002}, 4, AccessKind::data, memory());
    EXPECT_EQ(agrees(), times == 1);
  }
}

TEST_F(ReadMatcherTest, APageWalkOfTheReplayAloneIsNone) {
  begin(CacheForm::none);
  matcher_->read(PhysAddr{0x1000}, 4, AccessKind::walk, memory());
  EXPECT_TRUE(agrees());
}

TEST_F(ReadMatcherTest, OfAnOperandWhoseSecondPageFaultsTheFirstPartMayBeRead) {
  for (const bool on_bus : {false, true}) {
    begin(CacheForm::none);
    if (on_bus) matcher_->expect(counted(BusOp::data_read, 0x1ffd, 3, 0));
    matcher_->read(PhysAddr{0x1ffd}, 3, AccessKind::data, memory());
    matcher_->page_fault(LinearAddr{0xb7fd8000});
    EXPECT_TRUE(agrees());
  }
  begin(CacheForm::none);
  matcher_->read(PhysAddr{0x1ff0}, 4, AccessKind::data, memory());
  matcher_->page_fault(LinearAddr{0xb7fd8000});
  EXPECT_FALSE(agrees()) << "not the end of a page";
  begin(CacheForm::none);
  matcher_->read(PhysAddr{0x1ffd}, 3, AccessKind::data, memory());
  matcher_->page_fault(LinearAddr{0xb7fd8004});
  EXPECT_FALSE(agrees()) << "another operand faults";
}

TEST_F(ReadMatcherTest, AReadOfWhatIsOverwrittenAnywayIsAllowed) {
  begin(CacheForm::none);
  matcher_->expect(counted(BusOp::data_read, 0x1000, 4, 0));
  matcher_->stored(PhysAddr{0x1000}, 4, memory());
  EXPECT_TRUE(agrees());
}

TEST_F(ReadMatcherTest, CodeThatWasNotFetchedIsNoticed) {
  begin(CacheForm::none);
  matcher_->expect(counted(BusOp::code_read, 0x1000, 4, 0));
  matcher_->fetched(PhysAddr{0x1002}, 2, memory());
  EXPECT_TRUE(agrees());
  matcher_->fetched(PhysAddr{0x1003}, 2, memory());
  EXPECT_TRUE(matcher_->settle(2, memory()).has_value());
}

TEST_F(ReadMatcherTest, CodeIsComparedAsItWasWhenItWasFetched) {
  const std::uint8_t patch = 0xee;
  BusTransaction write = counted(BusOp::data_write, 0x1000, 1, 0);
  write.data[0] = patch;
  begin(CacheForm::none);
  matcher_->expect(counted(BusOp::code_read, 0x1000, 4, 0));
  matcher_->captured_write(write);  // by a later instruction, which the replay has not made yet
  matcher_->fetched(PhysAddr{0x1000}, 2, memory());
  EXPECT_TRUE(agrees());
  begin(CacheForm::none);
  matcher_->captured_write(write);
  matcher_->expect(counted(BusOp::code_read, 0x1000, 4, 0));
  matcher_->fetched(PhysAddr{0x1000}, 2, memory());
  EXPECT_FALSE(agrees());
}

TEST_F(ReadMatcherTest, CodeThatTheReplayAloneHasWrittenIsNoticed) {
  const std::uint8_t patch = 0xee;
  begin(CacheForm::none);
  memory().store(PhysAddr{0x1010}, {&patch, 1});
  matcher_->expect(counted(BusOp::code_read, 0x1000, 4, 0));
  matcher_->fetched(PhysAddr{0x1000}, 2, memory());
  EXPECT_TRUE(agrees());
  memory().store(PhysAddr{0x1001}, {&patch, 1});
  matcher_->expect(counted(BusOp::code_read, 0x1000, 4, 1));
  matcher_->fetched(PhysAddr{0x1000}, 2, memory());
  EXPECT_TRUE(matcher_->settle(2, memory()).has_value());
}

/// MOV EAX,[1010h] and INC EBX at 1000h, which ran as a block.
class UncachedBlock : public ReadMatcherTest {
 protected:
  UncachedBlock() { begin(CacheForm::none); }
  void fetch_all() {
    matcher_->expect(counted(BusOp::code_read, 0x1000, 4, 0));
    matcher_->expect(counted(BusOp::code_read, 0x1004, 4, 0));
  }
  bool block_agrees() {
    const JudgedPart whole{kBegins.data(), 0, 2, LinearAddr{0x1000}, PhysAddr{0x1000}, {}, false};
    const JudgedBlock block{{&whole, 1}, {}, reads_};
    return matcher_->agrees(block, 0, BlockMemory(block, memory()));
  }

  static constexpr std::array<std::uint16_t, 3> kBegins{0, 5, 6};
  std::array<BlockRead, 1> reads_{BlockRead{PhysAddr{0x1010}, 4, 0}};
};

TEST_F(UncachedBlock, AgreesWithTheSameReadsAndFetches) {
  fetch_all();
  matcher_->expect(counted(BusOp::data_read, 0x1010, 2, 0));
  matcher_->expect(counted(BusOp::data_read, 0x1012, 2, 0));
  EXPECT_TRUE(block_agrees());
  matcher_->pass_block(1);
  EXPECT_EQ(matcher_->compared(), 4u);
}

TEST_F(UncachedBlock, DoesNotAgreeWithoutOneOfItsReads) {
  fetch_all();
  matcher_->expect(counted(BusOp::data_read, 0x1010, 2, 0));
  EXPECT_FALSE(block_agrees());
}

TEST_F(UncachedBlock, DoesNotAgreeWithAReadOfAnotherInstruction) {
  fetch_all();
  matcher_->expect(counted(BusOp::data_read, 0x1010, 4, 1));
  EXPECT_FALSE(block_agrees());
}

TEST_F(UncachedBlock, DoesNotAgreeWithAReadElsewhere) {
  fetch_all();
  matcher_->expect(counted(BusOp::data_read, 0x1010, 4, 0));
  matcher_->expect(counted(BusOp::data_read, 0x1020, 4, 1));
  EXPECT_FALSE(block_agrees());
}

TEST_F(UncachedBlock, MayBeAccompaniedByAPageWalk) {
  fetch_all();
  matcher_->table(PhysAddr{0x1020});
  matcher_->expect(counted(BusOp::data_read, 0x1010, 4, 0));
  matcher_->expect(counted(BusOp::data_read, 0x1020, 4, 1));
  EXPECT_TRUE(block_agrees());
}

TEST_F(UncachedBlock, DoesNotAgreeWithCodeThatWasNotFetched) {
  matcher_->expect(counted(BusOp::code_read, 0x1000, 4, 0));
  matcher_->expect(counted(BusOp::data_read, 0x1010, 4, 0));
  EXPECT_FALSE(block_agrees());
  // And what was refused leaves nothing behind.
  matcher_->skip(0);
  matcher_->fetched(PhysAddr{0x1000}, 2, memory());
  EXPECT_FALSE(agrees());
}

TEST_F(UncachedBlock, DoesNotAgreeWithOtherCode) {
  const std::uint8_t patch = 0xee;
  fetch_all();
  matcher_->expect(counted(BusOp::data_read, 0x1010, 4, 0));
  memory().store(PhysAddr{0x1001}, {&patch, 1});
  EXPECT_FALSE(block_agrees());
}

TEST_F(UncachedBlock, DoesNotAgreeWhereAnEventReadSomethingBefore) {
  fetch_all();
  matcher_->expect(counted(BusOp::data_read, 0x1010, 4, 0));
  matcher_->read(PhysAddr{0x1040}, 4, AccessKind::system, memory());
  EXPECT_FALSE(block_agrees());
}

TEST_F(ReadMatcherTest, AFillIsOfALineThatTheInstructionTouches) {
  begin(CacheForm::write_back);
  matcher_->expect(counted(BusOp::data_read, 0x1020, 16, 0, kLine));
  matcher_->expect(counted(BusOp::data_read, 0x1030, 16, 0, kLine));
  matcher_->read(PhysAddr{0x1034}, 4, AccessKind::data, memory());
  EXPECT_TRUE(agrees());
  matcher_->expect(counted(BusOp::data_read, 0x1040, 16, 1, kLine));
  matcher_->read(PhysAddr{0x1034}, 4, AccessKind::data, memory());
  EXPECT_TRUE(matcher_->settle(2, memory()).has_value());
}

TEST_F(ReadMatcherTest, AFillWithOtherBytesThanMemoryHoldsIsNoticed) {
  begin(CacheForm::write_back);
  const std::uint8_t wrong = 0xee;
  memory().store(PhysAddr{0x1025}, {&wrong, 1});
  matcher_->expect(counted(BusOp::data_read, 0x1020, 16, 0, kLine));
  matcher_->read(PhysAddr{0x1020}, 4, AccessKind::data, memory());
  EXPECT_FALSE(agrees());
}

TEST_F(ReadMatcherTest, AFillForAStoreShowsWhatTheStoreHasChangedSince) {
  begin(CacheForm::write_back);
  matcher_->expect(counted(BusOp::data_read, 0x1020, 16, 0, kLine | kStoreFill));
  const std::uint8_t stored = 0xee;
  memory().store(PhysAddr{0x1025}, {&stored, 1});
  matcher_->stored(PhysAddr{0x1025}, 1, memory());
  EXPECT_TRUE(agrees());
}

}  // namespace
}  // namespace citcat::test
