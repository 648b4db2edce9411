// What a block did, against what waits for it. No instruction runs here.

#include "replay/verify/block_comparison.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "unit/replay/verify/bus_transactions.h"
#include "unit/replay/verify/idle_machine.h"

namespace citcat::test {
namespace {

/// MOV [1010h],EAX and INC EBX at 1000h: instructions 0 and 1.
class BlockComparisonTest : public testing::Test {
 protected:
  void begin(CacheForm form, std::vector<BusTransaction> evidence) {
    Recording& recording = machine_.recording();
    recording.bus = {form, 16, 4, 0xffffffff};
    recording.instructions = 100;
    VerifierOptions options;
    options.plain = true;
    comparison_ = std::make_unique<Comparison>(recording,
                                               std::make_unique<ListedEvidence>(evidence), options);
    comparison_->machine = &machine_.machine();
    judge_.emplace(*comparison_);
  }
  /// The block stored these four bytes, which memory holds now.
  bool agrees(std::array<std::uint8_t, 4> bytes) {
    BlockStore store{PhysAddr{0x1010}, 4, 0, 0xf, {}, {0x10, 0x11, 0x12, 0x13}};
    std::copy(bytes.begin(), bytes.end(), store.value.begin());
    machine_.memory().store(store.address, store.bytes());
    stores_ = {store};
    return judge_->agrees(executed(), {});
  }
  JudgedBlock executed() const { return {{&whole_, 1}, stores_, {}}; }
  const VerifyTotals& totals() const { return comparison_->result.totals; }

  static BusTransaction behind() { return counted(BusOp::data_write, 0x1080, {1}, 50); }

  IdleMachine machine_;
  std::unique_ptr<Comparison> comparison_;
  std::optional<BlockComparison> judge_;
  static constexpr std::array<std::uint16_t, 3> kBegins{0, 5, 6};
  const JudgedPart whole_{kBegins.data(), 0, 2, LinearAddr{0x1000}, PhysAddr{0x1000}, {}, false};
  std::vector<BlockStore> stores_;
};

TEST_F(BlockComparisonTest, AStoreAgreesWithTheWritesThatShowIt) {
  begin(CacheForm::write_through, {counted(BusOp::data_write, 0x1010, {1, 2}, 0),
                                   counted(BusOp::data_write, 0x1012, {3, 4}, 0), behind()});
  EXPECT_EQ(judge_->expected(), (Position{0, 0}));
  comparison_->pull();
  ASSERT_TRUE(judge_->may_run_block({}, 2));
  ASSERT_TRUE(agrees({1, 2, 3, 4}));
  judge_->agreed(executed(), {});
  EXPECT_EQ(totals().writes.equal, 2u);
  EXPECT_EQ(judge_->expected(), (Position{50, 0}));
}

TEST_F(BlockComparisonTest, AnotherValueIsRefused) {
  begin(CacheForm::write_through, {counted(BusOp::data_write, 0x1010, {1, 2, 3, 4}, 0), behind()});
  comparison_->pull();
  ASSERT_TRUE(judge_->may_run_block({}, 2));
  EXPECT_FALSE(agrees({1, 2, 3, 5}));
  EXPECT_EQ(totals().writes.checked, 0u) << "whoever makes it again judges";
}

TEST_F(BlockComparisonTest, AWriteOfAnotherInstructionIsRefused) {
  begin(CacheForm::write_through, {counted(BusOp::data_write, 0x1010, {1, 2, 3, 4}, 1), behind()});
  comparison_->pull();
  ASSERT_TRUE(judge_->may_run_block({}, 2));
  EXPECT_FALSE(agrees({1, 2, 3, 4}));
}

TEST_F(BlockComparisonTest, ABlockDoesNotRunBeforeAllItsTrafficIsKnown) {
  begin(CacheForm::write_through, {counted(BusOp::data_write, 0x1010, {1, 2, 3, 4}, 0)});
  EXPECT_FALSE(judge_->may_run_block({}, 2)) << "nothing has been counted";
  comparison_->pull();
  EXPECT_FALSE(judge_->may_run_block({}, 2)) << "the capture ends here";
}

TEST_F(BlockComparisonTest, BehindACacheALineIsExpectedOneInstructionEarlier) {
  begin(CacheForm::write_back, {counted(BusOp::data_write, 0x1010, {1, 2, 3, 4}, 7, kWriteBack)});
  EXPECT_EQ(judge_->expected(), (Position{6, 0}));
  EXPECT_TRUE(judge_->expects_nothing({5, 9}));
  EXPECT_FALSE(judge_->expects_nothing({6, 0}));
}

TEST_F(BlockComparisonTest, ALineAgreesBeforeItsInstructionOrBehindIt) {
  for (const std::uint8_t first : {std::uint8_t{0x10}, std::uint8_t{1}}) {
    machine_ = IdleMachine();
    begin(CacheForm::write_back, {counted(BusOp::data_write, 0x1010, {first}, 0, kWriteBack),
                                  counted(BusOp::data_write, 0x1080, {1}, 50, kWriteBack)});
    comparison_->pull();
    ASSERT_TRUE(judge_->may_run_block({}, 2));
    EXPECT_TRUE(agrees({1, 2, 3, 4}));
    judge_->agreed(executed(), {});
    EXPECT_EQ(totals().write_backs.equal, 2u) << "transactions that the line is";
  }
}

TEST_F(BlockComparisonTest, ALineThatMemoryNeverHeldIsRefused) {
  begin(CacheForm::write_back, {counted(BusOp::data_write, 0x1010, {0x77}, 0, kWriteBack),
                                counted(BusOp::data_write, 0x1080, {1}, 50, kWriteBack)});
  comparison_->pull();
  ASSERT_TRUE(judge_->may_run_block({}, 2));
  EXPECT_FALSE(agrees({1, 2, 3, 4}));
}

TEST_F(BlockComparisonTest, AnUncachedReadRunsInABlockUnlessItReadsADeviceBack) {
  const BusTransaction to_device = counted(BusOp::data_write, 0x3000, {1}, 0, kUncacheable);
  const auto runs = [&](std::vector<BusTransaction> evidence) {
    machine_ = IdleMachine();
    evidence.push_back(counted(BusOp::data_write, 0x1080, {1}, 50, kWriteBack));
    begin(CacheForm::write_back, evidence);
    comparison_->final_memory.write_agreed(to_device);
    comparison_->pull();
    return judge_->may_run_block({}, 2);
  };
  const BusTransaction elsewhere = counted(BusOp::data_read, 0x2000, 4, 0, kUncacheable);
  EXPECT_TRUE(runs({elsewhere, elsewhere}));
  EXPECT_TRUE(runs({elsewhere, counted(BusOp::code_read, 0x3000, 4, 0, kUncacheable)}));
  EXPECT_FALSE(runs({elsewhere, counted(BusOp::data_read, 0x3000, 4, 0, kUncacheable)}));
  EXPECT_FALSE(runs({counted(BusOp::data_write, 0x2002, {1}, 0, kUncacheable), elsewhere}));
}

TEST_F(BlockComparisonTest, AnEventHasARepeatedStringStartAgain) {
  BusTransaction t = counted(BusOp::data_write, 0x1010, {1}, 7);
  t.position.iteration = 3;
  begin(CacheForm::write_through, {t});
  EXPECT_EQ(judge_->expected(), (Position{7, 3}));
  judge_->interrupted({7, 1});
  EXPECT_FALSE(judge_->expects_nothing({7, 0}));
  EXPECT_EQ(judge_->expected(), (Position{7, 0}));
}

}  // namespace
}  // namespace citcat::test
