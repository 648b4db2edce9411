#include "events/derive/recording_builder.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace citcat {
namespace {

class Collector final : public EvidenceWriter {
 public:
  void write(const BusTransaction& t) override { seen.push_back(t); }
  std::vector<BusTransaction> seen;
};

/// Feeds a builder with transactions written as short calls.
class BuilderTest : public testing::Test {
 protected:
  BusTransaction make(BusOp op, std::uint32_t address, std::vector<std::uint8_t> bytes,
                      unsigned flags = 0) {
    BusTransaction t;
    t.index = index_++;
    t.op = op;
    t.address = PhysAddr{address};
    t.size = static_cast<std::uint8_t>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), t.data.begin());
    t.flags = static_cast<std::uint16_t>(flags);
    return t;
  }
  void add(BusOp op, std::uint32_t address, std::vector<std::uint8_t> bytes, unsigned flags = 0) {
    builder_.add(make(op, address, std::move(bytes), flags));
  }
  void read(std::uint32_t address, std::vector<std::uint8_t> bytes, unsigned flags = 0) {
    add(BusOp::data_read, address, std::move(bytes), flags);
  }
  void fetch(std::uint32_t address, std::vector<std::uint8_t> bytes, unsigned flags = 0) {
    add(BusOp::code_read, address, std::move(bytes), flags);
  }
  void write(std::uint32_t address, std::vector<std::uint8_t> bytes, unsigned flags = 0) {
    add(BusOp::data_write, address, std::move(bytes), flags);
  }
  void at(std::uint64_t instruction, std::uint32_t iteration, BusOp op, std::uint32_t address,
          std::vector<std::uint8_t> bytes) {
    BusTransaction t = make(op, address, std::move(bytes), kPositionKnown);
    t.position = {instruction, iteration};
    builder_.add(t);
  }

  std::uint64_t index_ = 0;
  Collector evidence_;
  RecordingBuilder builder_{{}, &evidence_};
};

TEST_F(BuilderTest, PutsBytesReadBeforeWrittenIntoTheImage) {
  read(0x1000, {1, 2});
  fetch(0x1002, {3});
  const Recording r = builder_.finish();
  EXPECT_EQ(r.image.byte_count(), 3u);
  EXPECT_EQ(r.image.byte(PhysAddr{0x1001}), 2);
  EXPECT_EQ(r.image.byte(PhysAddr{0x1002}), 3);
  EXPECT_TRUE(r.external_writes.empty());
}

TEST_F(BuilderTest, LeavesBytesWrittenFirstOutOfTheImage) {
  write(0x1000, {1, 2});
  read(0x1000, {1, 2, 3, 4});
  const Recording r = builder_.finish();
  EXPECT_EQ(r.image.byte(PhysAddr{0x1000}), std::nullopt);
  EXPECT_EQ(r.image.byte(PhysAddr{0x1001}), std::nullopt);
  EXPECT_EQ(r.image.byte(PhysAddr{0x1002}), 3);
  EXPECT_EQ(r.image.byte_count(), 2u);
}

TEST_F(BuilderTest, ImageKeepsTheFirstValueWhenTheByteChangesLater) {
  read(0x1000, {1});
  write(0x1000, {2});
  read(0x1000, {2});
  const Recording r = builder_.finish();
  EXPECT_EQ(r.image.byte(PhysAddr{0x1000}), 1);
  EXPECT_TRUE(r.external_writes.empty());
}

TEST_F(BuilderTest, TakesAReadThatContradictsTheModelForAnExternalWrite) {
  read(0x1000, {1, 2, 3, 4});
  at(7, 2, BusOp::data_read, 0x1000, {1, 9, 3, 8});
  const Recording r = builder_.finish();
  ASSERT_EQ(r.external_writes.size(), 1u);
  const ExternalWrite& w = r.external_writes[0];
  EXPECT_EQ(w.address, PhysAddr{0x1001});
  EXPECT_EQ(w.data, (std::vector<std::uint8_t>{9, 3, 8}));
  EXPECT_TRUE(w.position_known);
  EXPECT_EQ(w.position, (Position{7, 2}));
  EXPECT_EQ(w.transaction, 1u);
  EXPECT_EQ(w.anchor.reads, 1u);
  EXPECT_EQ(r.image.byte(PhysAddr{0x1001}), 2);
}

TEST_F(BuilderTest, ShowsAnExternalWriteOnce) {
  read(0x1000, {1});
  read(0x1000, {2});
  read(0x1000, {2});
  EXPECT_EQ(builder_.finish().external_writes.size(), 1u);
}

TEST_F(BuilderTest, SeesDmaOverBytesTheProcessorWrote) {
  write(0x2000, {0xaa});
  read(0x2000, {0xbb});
  const Recording r = builder_.finish();
  ASSERT_EQ(r.external_writes.size(), 1u);
  EXPECT_EQ(r.external_writes[0].data, (std::vector<std::uint8_t>{0xbb}));
  EXPECT_EQ(r.image.byte_count(), 0u);
}

TEST_F(BuilderTest, JoinsReadsThatFollowEachOtherDirectly) {
  read(0x1000, std::vector<std::uint8_t>(16, 0), kLine);
  read(0x1010, std::vector<std::uint8_t>(16, 0), kLine);
  read(0x1000, std::vector<std::uint8_t>(16, 5), kLine);
  read(0x1010, std::vector<std::uint8_t>(16, 6), kLine);
  read(0x1010, std::vector<std::uint8_t>(16, 7), kLine);
  const Recording r = builder_.finish();
  ASSERT_EQ(r.external_writes.size(), 2u);
  EXPECT_EQ(r.external_writes[0].data.size(), 32u);
  EXPECT_EQ(r.external_writes[0].transaction, 2u);
  EXPECT_EQ(r.external_writes[1].data.size(), 16u);
}

TEST_F(BuilderTest, TakesWriteBacksForTheProcessorsOwnWrites) {
  read(0x1000, std::vector<std::uint8_t>(16, 0), kLine);
  write(0x1000, std::vector<std::uint8_t>(16, 3), kLine | kWriteBack);
  read(0x1000, std::vector<std::uint8_t>(16, 3), kLine);
  const Recording r = builder_.finish();
  EXPECT_TRUE(r.external_writes.empty());
  EXPECT_EQ(r.bus.form, CacheForm::write_back);
  EXPECT_EQ(r.totals.write_backs, 1u);
  EXPECT_EQ(r.totals.writes, 0u);
  EXPECT_EQ(evidence_.seen.at(1).data[5], 3);
}

TEST_F(BuilderTest, DmaIntoADirtyLineStandsBehindItsSnoopWriteBack) {
  read(0x1000, std::vector<std::uint8_t>(16, 0), kLine);
  write(0x1000, std::vector<std::uint8_t>(16, 1), kLine | kWriteBack | kSnoop);
  read(0x1000, std::vector<std::uint8_t>(16, 2), kLine);
  const Recording r = builder_.finish();
  ASSERT_EQ(r.external_writes.size(), 1u);
  EXPECT_EQ(r.external_writes[0].data[0], 2);
  EXPECT_EQ(r.external_writes[0].anchor.reads, 1u);
}

TEST_F(BuilderTest, CountsAnchorsBeforeTheEvent) {
  write(0x1000, {1, 2, 3});
  add(BusOp::io_write, 0x80, {1});
  add(BusOp::io_read, 0x60, {0x1c});
  read(0x3000, {0});
  write(0x1000, std::vector<std::uint8_t>(16, 1), kLine | kWriteBack);
  add(BusOp::interrupt_acknowledge, 0, {8});
  add(BusOp::interrupt_acknowledge, 0, {9});
  const Recording r = builder_.finish();
  ASSERT_EQ(r.interrupts.size(), 2u);
  EXPECT_EQ(r.interrupts[0].anchor, (BusAnchor{3, 2, 0, 1}));
  EXPECT_EQ(r.interrupts[1].anchor, (BusAnchor{3, 2, 1, 1}));
  EXPECT_EQ(r.interrupts[1].vector, 9);
}

TEST_F(BuilderTest, WindowBeginsAtOrBeforeTheLastAccess) {
  read(0x1000, {1, 2, 3, 4});
  // Far enough to fall into another epoch of the clock.
  for (std::uint32_t i = 0; i < 1000; ++i) add(BusOp::io_write, 0x80, {1});
  read(0x1000, {1, 2, 3, 4});
  for (std::uint32_t i = 0; i < 1000; ++i) add(BusOp::io_write, 0x80, {1});
  read(0x1000, {9, 2, 3, 4});
  const Recording r = builder_.finish();
  ASSERT_EQ(r.external_writes.size(), 1u);
  EXPECT_EQ(r.external_writes[0].anchor.io, 2000u);
  EXPECT_LE(r.external_writes[0].window_begin.io, 1000u);
  EXPECT_GE(r.external_writes[0].window_begin.io, 1000u - AccessClock::kEpochTransactions);
}

TEST_F(BuilderTest, ListsPortReadsInOrderWithSizeAndValue) {
  add(BusOp::io_read, 0x1f0, {0x34, 0x12});
  add(BusOp::io_read, 0xcfc, {1, 2, 3, 4});
  const Recording r = builder_.finish();
  ASSERT_EQ(r.io_reads.size(), 2u);
  EXPECT_EQ(r.io_reads[0].port, 0x1f0);
  EXPECT_EQ(r.io_reads[0].size, 2);
  EXPECT_EQ(r.io_reads[0].value, 0x1234u);
  EXPECT_EQ(r.io_reads[1].value, 0x04030201u);
}

TEST_F(BuilderTest, GivesNmiItsVector) {
  add(BusOp::nmi, 0, {});
  const Recording r = builder_.finish();
  ASSERT_EQ(r.interrupts.size(), 1u);
  EXPECT_EQ(r.interrupts[0].kind, Interrupt::Kind::nmi);
  EXPECT_EQ(r.interrupts[0].vector, 2);
}

TEST_F(BuilderTest, ShowsAnInterruptAtItsMarker) {
  BuilderOptions options;
  options.on_chip = {parse_on_chip_marker("30=io-write:20:60")};
  builder_ = RecordingBuilder(options, nullptr);
  write(0x100, {1, 2});
  add(BusOp::io_write, 0x20, {0x61});
  add(BusOp::io_write, 0x20, {0x60});
  const Recording r = builder_.finish();
  ASSERT_EQ(r.interrupts.size(), 1u);
  EXPECT_EQ(r.interrupts[0].kind, Interrupt::Kind::on_chip);
  EXPECT_EQ(r.interrupts[0].vector, 0x30);
  EXPECT_FALSE(r.interrupts[0].position_known);
  EXPECT_EQ(r.interrupts[0].transaction, 2u);
  EXPECT_EQ(r.interrupts[0].anchor, (BusAnchor{2, 1, 0, 0}));
}

TEST_F(BuilderTest, TakesTheThirdStoreAfterAReadForItsMarker) {
  BuilderOptions options;
  options.on_chip = {parse_on_chip_marker("8=mem-read:20")};
  builder_ = RecordingBuilder(options, nullptr);
  read(0x20, {0, 0});
  read(0x22, {0x50, 0});
  write(0x1fe, {2, 2});
  write(0x1fc, {0, 1});
  write(0x1fa, {7, 0});
  write(0x1f8, {9, 9});
  const Recording r = builder_.finish();
  ASSERT_EQ(r.interrupts.size(), 1u);
  EXPECT_EQ(r.interrupts[0].transaction, 4u);
  EXPECT_EQ(r.interrupts[0].anchor.writes, 4u);
}

TEST_F(BuilderTest, PassesEvidenceOnWithoutTheDataOfReads) {
  read(0x1000, {1, 2});
  write(0x1004, {3});
  const Recording r = builder_.finish();
  ASSERT_EQ(evidence_.seen.size(), 2u);
  EXPECT_EQ(evidence_.seen[0].size, 2);
  EXPECT_EQ(evidence_.seen[0].data[0], 0);
  EXPECT_EQ(evidence_.seen[1].data[0], 3);
  EXPECT_EQ(r.totals.transactions, 2u);
}

TEST_F(BuilderTest, CountsPositionsFromTheStart) {
  builder_.start({100, 5});
  at(100, 5, BusOp::interrupt_acknowledge, 0, {8});
  at(100, 7, BusOp::data_write, 0x10, {1});
  at(101, 2, BusOp::data_write, 0x10, {1});
  const Recording r = builder_.finish();
  EXPECT_EQ(r.interrupts.at(0).position, (Position{0, 0}));
  EXPECT_EQ(evidence_.seen[1].position, (Position{0, 2}));
  EXPECT_EQ(evidence_.seen[2].position, (Position{1, 2}));
  EXPECT_EQ(r.instructions, 2u);
}

TEST_F(BuilderTest, KnowsNoInstructionsWhenOnlyInterruptsAreCounted) {
  read(0x1000, {1});
  at(5, 0, BusOp::interrupt_acknowledge, 0, {8});
  EXPECT_EQ(builder_.finish().instructions, std::nullopt);
}

TEST_F(BuilderTest, ForgetsWhatWasSeenBeforeTheStartWithoutACache) {
  builder_.observe(make(BusOp::data_read, 0x1000, {1, 1}));
  builder_.start({});
  read(0x1000, {2});
  const Recording r = builder_.finish();
  EXPECT_EQ(r.image.byte_count(), 1u);
  EXPECT_EQ(r.image.byte(PhysAddr{0x1000}), 2);
  EXPECT_TRUE(r.external_writes.empty());
}

TEST_F(BuilderTest, KeepsWhatACacheMayHoldFromBeforeTheStart) {
  builder_.observe(make(BusOp::data_read, 0x1000, std::vector<std::uint8_t>(16, 1), kLine));
  builder_.observe(make(BusOp::data_write, 0x1000, {5}));
  builder_.start({});
  write(0x1001, {6});
  read(0x1002, {7, 7});
  const Recording r = builder_.finish();
  EXPECT_EQ(r.image.byte_count(), 16u);
  EXPECT_EQ(r.image.byte(PhysAddr{0x1000}), 5);
  EXPECT_EQ(r.image.byte(PhysAddr{0x1001}), 1) << "it may have been read before it was written";
  EXPECT_EQ(r.image.byte(PhysAddr{0x1002}), 1);
  ASSERT_EQ(r.external_writes.size(), 1u);
  EXPECT_EQ(r.external_writes[0].data, (std::vector<std::uint8_t>{7, 7}));
}

TEST_F(BuilderTest, KeepsWhatATlbMayHoldFromBeforeTheStart) {
  BuilderOptions options;
  options.has_tlb = true;
  RecordingBuilder builder(options, nullptr);
  builder.observe(make(BusOp::data_read, 0x1000, {1, 1, 1, 1}));
  builder.start({});
  builder.add(make(BusOp::data_write, 0x1001, {6}));
  builder.add(make(BusOp::data_read, 0x1002, {7}));
  const Recording r = builder.finish();
  EXPECT_EQ(r.image.byte(PhysAddr{0x1000}), 1);
  EXPECT_EQ(r.image.byte(PhysAddr{0x1001}), 1) << "a page may have been used by it before";
  EXPECT_EQ(r.image.byte(PhysAddr{0x1002}), 7);
  EXPECT_TRUE(r.external_writes.empty());
}

TEST_F(BuilderTest, AcceptsTransactionsAcrossPagesAndLines) {
  read(0x1ffe, {1, 2, 3, 4});
  write(0x1ffe, {5, 6, 7, 8});
  read(0x2000, {7, 8});
  const Recording r = builder_.finish();
  EXPECT_EQ(r.image.byte(PhysAddr{0x2001}), 4);
  EXPECT_TRUE(r.external_writes.empty());
}

// What was in the prefetch queue is executed whatever memory holds by then.
TEST_F(BuilderTest, CodeThatChangesBehindItsExecutionChangesBehindIt) {
  fetch(0x1000, {0x63, 0xfd});
  at(7, 0, BusOp::instruction_start, 0x1000, {0x63, 0xfd});
  fetch(0x1000, {0x90, 0x90});
  const Recording r = builder_.finish();
  ASSERT_EQ(r.external_writes.size(), 1u);
  const ExternalWrite write = r.external_writes[0];
  EXPECT_TRUE(write.position_known);
  EXPECT_EQ(write.position, (Position{8, 0}));
}

TEST_F(BuilderTest, CodeThatChangesBeforeItsExecutionHasNoPosition) {
  fetch(0x1000, {0x63});
  fetch(0x1000, {0x90});
  at(7, 0, BusOp::instruction_start, 0x1000, {0x90});
  fetch(0x1000, {0x90});
  at(8, 0, BusOp::instruction_start, 0x2000, {0x90});
  fetch(0x3000, {0x90});
  fetch(0x3000, {0x91});  // not executed meanwhile
  const Recording r = builder_.finish();
  ASSERT_EQ(r.external_writes.size(), 2u);
  for (const ExternalWrite& write : r.external_writes) EXPECT_FALSE(write.position_known);
}

/// The rules again, byte by byte in the plainest way: what the builder must agree with.
struct Reference {
  std::map<std::uint32_t, std::uint8_t> model, image;
  std::map<std::uint64_t, std::map<std::uint32_t, std::uint8_t>> changed;  // by transaction

  void take(const BusTransaction& t) {
    for (std::uint32_t i = 0; i < t.size; ++i) {
      const std::uint32_t a = t.address.low32() + i;
      if (t.op != BusOp::data_write) {
        if (!model.contains(a)) {
          image[a] = t.data[i];
        } else if (model[a] != t.data[i]) {
          changed[t.index][a] = t.data[i];
        }
      }
      model[a] = t.data[i];
    }
  }
};

TEST_F(BuilderTest, AgreesWithTheRulesOnRandomTraffic) {
  std::mt19937 random(20260101);
  Reference reference;
  for (int i = 0; i < 20000; ++i) {
    const BusOp op = static_cast<BusOp>(random() % 3);
    const std::uint32_t size = 1u << random() % 5;
    const auto place = static_cast<std::uint32_t>(random() % 128);
    const std::uint32_t address = 0xff0 + (place & ~(size - 1));
    std::vector<std::uint8_t> bytes(size);
    for (auto& b : bytes) b = static_cast<std::uint8_t>(random() % 3);
    const BusTransaction t = make(op, address, bytes);
    reference.take(t);
    builder_.add(t);
  }
  const Recording r = builder_.finish();
  ASSERT_EQ(r.image.byte_count(), reference.image.size());
  for (const auto& [address, value] : reference.image) {
    EXPECT_EQ(r.image.byte(PhysAddr{address}), value);
  }
  std::uint64_t bytes = 0;
  for (const ExternalWrite& w : r.external_writes) bytes += w.data.size();
  std::uint64_t changed = 0;
  for (const auto& [transaction, by_address] : reference.changed) changed += by_address.size();
  EXPECT_GE(bytes, changed);
  EXPECT_GT(changed, 1000u);
  for (const ExternalWrite& w : r.external_writes) {
    const auto truth = reference.changed.find(w.transaction);
    ASSERT_NE(truth, reference.changed.end());
    EXPECT_EQ(truth->second.begin()->first, w.address.value);
  }
}

}  // namespace
}  // namespace citcat
