// Several processors: what their caches see of each other, whose an event of the log is, and what a
// recorder shows when another one's turn begins.

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "monitor/log/turns.h"
#include "tests/monitor/recorder_fixture.h"

namespace citcat::monitor {
namespace {

constexpr std::uint32_t kLine = 0x2000;

/// Two processors' caches on one bus.
class SharedBusTest : public BusTest {
 protected:
  void SetUp() override {
    BusTest::SetUp();
    sink_->show_processors();
  }
  void make(CacheModel model) {
    for (auto& one : bus_) {
      one = std::make_unique<BusModel>(memory_, *sink_, model);
      one->clear();
    }
    bus_[0]->share(0, {bus_[1].get()});
    bus_[1]->share(1, {bus_[0].get()});
  }
  void by(unsigned processor) {
    sink_->select(processor);
    sink_->set_position(++done_, 0);
  }
  void load_by(unsigned processor, std::uint32_t address) {
    by(processor);
    load(*bus_[processor], address, 4);
  }
  void store_by(unsigned processor, std::uint32_t address, std::uint8_t value) {
    by(processor);
    store(*bus_[processor], address, {value});
  }

  /// A record in short: its processor, its type, its flags.
  struct Short {
    int processor, type, flags;
    bool operator==(const Short&) const = default;
  };
  /// The records so far: the first parts of lines, and everything else.
  std::vector<Short> shown() {
    sink_->flush();
    std::vector<Short> out;
    std::array<std::uint8_t, 40> r;
    while (read(records_, r.data(), r.size()) == static_cast<ssize_t>(r.size())) {
      std::uint32_t clock = 0;
      std::memcpy(&clock, r.data() + 8, 4);
      EXPECT_GT(clock, clock_);
      clock_ = clock;
      if ((r[23] & 15) == 0) out.push_back({r[23] >> 4, r[20], r[22]});
    }
    return out;
  }

  std::array<std::unique_ptr<BusModel>, 2> bus_;
  std::uint64_t done_ = 0;
  std::uint32_t clock_ = 0;
};

constexpr int kFill = 2, kWrite = 3, kInvalidation = 20;
constexpr int kL = kLineBurst, kW = kVictimWriteBack, kS = kSnoopWriteBack, kR = kFillForStore,
              kHit = kSharedFill;

TEST_F(SharedBusTest, TheClockGoesOnByWhatWasDoneSinceTheLastRecord) {
  constexpr std::uint64_t kDone = 5000000;
  std::array<std::uint32_t, 2> clocks{};
  for (std::size_t n = 0; n < clocks.size(); ++n) {
    sink_->select(0);
    sink_->set_position(kDone + n, 0);
    sink_->port(RecordType::io_read, 0x80, 0, 1);
    sink_->flush();
    std::array<std::uint8_t, 40> record{};
    ASSERT_EQ(read(records_, record.data(), record.size()), 40);
    std::memcpy(&clocks[n], record.data() + 8, sizeof clocks[n]);
  }
  EXPECT_GT(clocks[1], clocks[0]);
  EXPECT_LT(clocks[1] - clocks[0], 10u);
}

TEST_F(SharedBusTest, ALineIsSharedThenMadeOwnThenWrittenBackForTheOther) {
  make(CacheModel::pentium);
  load_by(0, kLine);
  load_by(1, kLine);
  EXPECT_EQ(shown(), (std::vector<Short>{{0, kFill, kL}, {1, kFill, kL | kHit}}));
  store_by(1, kLine, 1);
  store_by(1, kLine, 2);
  EXPECT_EQ(shown(), (std::vector<Short>{{1, kInvalidation, 0}}));
  load_by(0, kLine);
  EXPECT_EQ(shown(), (std::vector<Short>{{1, kWrite, kL | kW | kS}, {0, kFill, kL | kHit}}));
  store_by(0, kLine + 8, 3);
  store_by(1, kLine, 4);
  EXPECT_EQ(shown(), (std::vector<Short>{
                         {0, kInvalidation, 0}, {0, kWrite, kL | kW | kS}, {1, kFill, kL | kR}}));
}

TEST_F(SharedBusTest, ALineOfItsOwnIsChangedWithoutAWord) {
  make(CacheModel::pentium);
  load_by(0, kLine);
  store_by(0, kLine, 1);
  EXPECT_EQ(shown(), (std::vector<Short>{{0, kFill, kL}}));
}

TEST_F(SharedBusTest, WhatIsLockedTakesTheLineWithItsRead) {
  make(CacheModel::pentium);
  load_by(1, kLine);
  load_by(0, kLine);
  bus_[0]->set_locked(true);
  load_by(0, kLine);
  store_by(0, kLine, 1);
  bus_[0]->set_locked(false);
  bus_[1]->set_locked(true);
  load_by(1, kLine);
  EXPECT_EQ(shown(), (std::vector<Short>{{1, kFill, kL},
                                         {0, kFill, kL | kHit},
                                         {0, kInvalidation, kLock},
                                         {0, kWrite, kL | kW | kS},
                                         {1, kFill, kL | kR}}));
}

TEST_F(SharedBusTest, WithoutCachesEachAccessIsShownAndLocksToo) {
  make(CacheModel::none);
  bus_[1]->set_locked(true);
  load_by(1, kLine);
  store_by(1, kLine, 1);
  bus_[1]->set_locked(false);
  load_by(0, kLine);
  EXPECT_EQ(shown(), (std::vector<Short>{{1, kFill, kLock}, {1, kWrite, kLock}, {0, kFill, 0}}));
}

TEST_F(SharedBusTest, AWriteThroughTakesTheLineFromTheOther) {
  make(CacheModel::i486);
  load_by(0, kLine);
  load_by(0, kLine);
  store_by(1, kLine, 1);
  load_by(0, kLine);
  EXPECT_EQ(shown(), (std::vector<Short>{{0, kFill, kL}, {1, kWrite, 0}, {0, kFill, kL}}));
}

/// A device's write is in RAM, and no processor has made it.
TEST_F(SharedBusTest, WhatADeviceWroteIsShownAsIts) {
  for (const CacheModel model : {CacheModel::none, CacheModel::i486, CacheModel::pentium}) {
    make(model);
    load_by(0, kLine);
    (void)shown();
    ram_[kLine] = static_cast<std::uint8_t>(~ram_[kLine]);
    load_by(0, kLine);
    const std::vector<Short> all = shown();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0], (Short{kOtherMaster, kWrite, 0}));
    EXPECT_EQ(all[1].processor, 0);
  }
}

LoggedEvent event_of(std::uint64_t gdt, std::uint64_t task) {
  LoggedEvent event;
  event.before.cr0 = 1;
  event.before.gdt_base = gdt;
  event.before.tr.base = task;
  return event;
}

TEST(Turns, AnEventIsOfTheProcessorWhoseTablesItShows) {
  const std::vector<Candidate> two{{false, false, 0xfffffe0000001000, 0xfffffe0000003000},
                                   {false, false, 0xfffffe000003c000, 0xfffffe000003e000}};
  EXPECT_EQ(whose(event_of(0xfffffe000003c000, 0xfffffe000003e000), two), 1u);
  EXPECT_EQ(whose(event_of(0x0003c000, 0x0003e000), two), 1u);  // half of them, as of 32-bit code
  EXPECT_FALSE(whose(event_of(0x1000, 0x2000), two));
}

TEST(Turns, NobodySaysWhoseItIsWhereTablesAreTheSame) {
  const std::vector<Candidate> two{{false, false, 0x1000, 0}, {false, false, 0x1000, 0}};
  EXPECT_FALSE(whose(event_of(0x1000, 0), two));
}

TEST(Turns, NothingIsDeliveredToAProcessorThatWaitsToBeStarted) {
  LoggedEvent event;
  event.real_mode = true;
  const std::vector<Candidate> two{{true, false, 0, 0}, {true, true, 0, 0}};
  EXPECT_EQ(whose(event, two), 0u);
}

TEST(Turns, AreOfDifferentLengthsAndTheSameInEachRecording) {
  TurnLength a, b;
  std::uint64_t longest = 0, shortest = ~std::uint64_t{0};
  for (int n = 0; n < 1000; ++n) {
    const std::uint64_t length = a.next();
    EXPECT_EQ(length, b.next());
    longest = std::max(longest, length);
    shortest = std::min(shortest, length);
  }
  EXPECT_GT(shortest, 0u);
  EXPECT_GT(longest, 20 * shortest);
}

class TurnRecorder : public RecorderFixture {};

TEST_F(TurnRecorder, WhatIsInFlightHasEndedWhenTheNextOnesTurnBegins) {
  sink_->show_processors();
  InterruptLog part(log_);
  Recorder recorder(memory_, *sink_, part, registers_, CacheModel::none);
  BusModel other(memory_, *sink_, CacheModel::none);
  recorder.share(1, {&other});
  const Insn halt = insn(0x1000, {0xf4});
  registers_.state_.ip = 0x1000;
  recorder.resume();
  recorder.begin(halt, 0);
  recorder.start(halt);
  (void)seen();
  registers_.state_.ip = 0x1001;
  recorder.rest();
  const auto rested = seen();
  ASSERT_EQ(rested.size(), 1u);
  EXPECT_EQ(rested[0].type, static_cast<int>(RecordType::halt));
  EXPECT_EQ(recorder.instructions(), 1u);
}

TEST_F(TurnRecorder, ARepGoesOnInItsNextTurn) {
  sink_->show_processors();
  InterruptLog part(log_);
  Recorder recorder(memory_, *sink_, part, registers_, CacheModel::none);
  const Insn stosb = insn(0x1000, {0xf3, 0xaa});
  registers_.state_.ip = 0x1000;
  recorder.share(0, {});
  recorder.begin(stosb, 0);
  recorder.start(stosb);
  const std::uint8_t zero = 0;
  recorder.access(stosb, true, 0x3000, 0x3000, false, {&zero, 1});
  recorder.rest();
  EXPECT_EQ(recorder.instructions(), 0u);
  recorder.start(stosb);
  recorder.access(stosb, true, 0x3001, 0x3001, false, {&zero, 1});
  EXPECT_EQ(recorder.instructions(), 0u);
}

TEST_F(TurnRecorder, IsStartedAtTheVectorThatCsHas) {
  sink_->show_processors();
  InterruptLog part(log_);
  Recorder recorder(memory_, *sink_, part, registers_, CacheModel::none);
  recorder.share(1, {});
  registers_.state_.cr0 = 0x60000010;
  registers_.state_.ip = 0xfff0;
  registers_.state_.segment[1] = {0xf000, 0xffff0000, 0xffff, 0x9b00};
  recorder.begin_at_rest();
  EXPECT_TRUE(recorder.waits());
  const auto beginning = seen();
  ASSERT_FALSE(beginning.empty());
  EXPECT_EQ(beginning.back().type, static_cast<int>(RecordType::init)) << "it waits for a SIPI";
  registers_.state_.ip = 0;
  registers_.state_.segment[1] = {0x9800, 0x98000, 0xffff, 0x9b00};
  Insn first = insn(0x98000, {0x90});
  first.code = CodeSize::bits16;
  recorder.start(first);
  const auto records = seen();
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records[0].type, static_cast<int>(RecordType::startup));
  EXPECT_EQ(records[0].data[0], 0x98);
  EXPECT_FALSE(recorder.waits());
}

}  // namespace
}  // namespace citcat::monitor
