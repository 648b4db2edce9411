// Real mode, told by hand what an emulator tells of it: vectors, and frames that it has pushed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "tests/monitor/recorder_fixture.h"

namespace citcat::monitor {
namespace {

class RealModeTest : public RecorderFixture {
 protected:
  static constexpr std::uint16_t kCodeSegment = 0x1000, kStackSegment = 0x2000, kHandler = 0x4444,
                                 kHandlerSegment = 0x3000, kTop = 0x100;
  static constexpr std::uint32_t kCode = 0x10000, kStack = 0x20000;

  void SetUp() override {
    RecorderFixture::SetUp();
    registers_.state_.cr0 = 0;
    for (LoggedSegment& s : registers_.state_.segment) s = {0, 0, 0xffff, 0x9300};
    registers_.state_.segment[1] = {kCodeSegment, kCode, 0xffff, 0x9b00};
    registers_.state_.segment[2] = {kStackSegment, kStack, 0xffff, 0x9300};
    registers_.state_.gpr[4] = kTop;
    recorder_.emplace(memory_, *sink_, log_, registers_, CacheModel::none);
  }

  Insn insn_at(std::uint32_t linear, std::initializer_list<std::uint8_t> bytes) {
    Insn insn;
    insn.linear = insn.physical = linear;
    insn.size = static_cast<std::uint8_t>(bytes.size());
    insn.first_in_block = true;
    std::copy(bytes.begin(), bytes.end(), insn.bytes.begin());
    std::copy(bytes.begin(), bytes.end(), ram_ + linear);
    insn.what = classify({insn.bytes.data(), insn.size}, CodeSize::bits16);
    return insn;
  }
  /// The recording begins with this instruction at the beginning of the code segment.
  void begin(std::initializer_list<std::uint8_t> bytes) {
    insn_ = insn_at(kCode, bytes);
    registers_.state_.ip = 0;
    recorder_->begin(insn_, 0);
    ASSERT_TRUE(recorder_->active());
    recorder_->start(insn_);
    (void)seen();
  }
  /// The emulator has delivered `vector`, from `return_ip`.
  void deliver(unsigned vector, std::uint16_t return_ip) {
    const std::uint16_t target[2] = {kHandler, kHandlerSegment};
    std::memcpy(ram_ + 4 * vector, target, sizeof target);
    const std::uint16_t frame[3] = {return_ip, kCodeSegment, 0x0246};
    registers_.state_.gpr[4] -= sizeof frame;
    std::memcpy(ram_ + kStack + registers_.state_.gpr[4], frame, sizeof frame);
    registers_.state_.segment[1] = {kHandlerSegment, kHandlerSegment << 4, 0xffff, 0x9b00};
    registers_.state_.ip = kHandler;
  }
  void log(const std::string& text) {
    ASSERT_EQ(write(log_file_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// The handler's first instruction starts; what the delivery has shown.
  std::vector<Seen> start_handler() {
    handler_ = insn_at((kHandlerSegment << 4) + kHandler, {0xcf});
    recorder_->start(handler_);
    auto records = seen();
    std::erase_if(records,
                  [](const Seen& s) { return s.type == static_cast<int>(RecordType::code_read); });
    return records;
  }
  /// The vector's dword, and words of FLAGS, CS and IP.
  void expect_delivery(std::span<const Seen> records, unsigned vector, std::uint16_t return_ip) {
    ASSERT_EQ(records.size(), 4u);
    EXPECT_EQ(records[0].type, static_cast<int>(RecordType::data_read));
    EXPECT_EQ(records[0].address, 4 * vector);
    EXPECT_EQ(records[0].size, 4);
    const std::uint16_t frame[3] = {0x0246, kCodeSegment, return_ip};
    for (unsigned n = 0; n < 3; ++n) {
      const Seen& push = records[1 + n];
      EXPECT_EQ(push.type, static_cast<int>(RecordType::data_write));
      EXPECT_EQ(push.address, kStack + kTop - 2 * (n + 1));
      EXPECT_EQ(push.size, 2);
      EXPECT_EQ(push.data[0] | push.data[1] << 8, frame[n]);
    }
  }

  Insn insn_, handler_;
  std::optional<Recorder> recorder_;
};

TEST_F(RealModeTest, ASoftwareInterruptThatNothingTellsOfReadsItsVectorAndPushesThreeWords) {
  begin({0xcd, 0x21});
  deliver(0x21, 2);
  expect_delivery(start_handler(), 0x21, 2);
}

TEST_F(RealModeTest, ABreakpointHasVector3) {
  begin({0xcc});
  deliver(3, 1);
  expect_delivery(start_handler(), 3, 1);
}

TEST_F(RealModeTest, IcebpHasVector1) {
  begin({0xf1});
  deliver(1, 1);
  expect_delivery(start_handler(), 1, 1);
  EXPECT_EQ(recorder_->instructions(), 1u);
}

TEST_F(RealModeTest, AnOverflowThatDidNotHappenDeliversNothing) {
  begin({0xce});
  registers_.state_.ip = 1;
  const Insn next = insn_at(kCode + 1, {0x90});
  recorder_->start(next);
  for (const Seen& s : seen()) EXPECT_EQ(s.type, static_cast<int>(RecordType::code_read));
  EXPECT_EQ(recorder_->instructions(), 1u);
}

TEST_F(RealModeTest, AnInterruptIsAcknowledgedAndReturnsBehindTheInstruction) {
  begin({0x90});
  deliver(8, 1);
  log("Servicing hardware INT=0x08\n");
  const auto records = start_handler();
  ASSERT_EQ(records.size(), 5u);
  EXPECT_EQ(records[0].type, static_cast<int>(RecordType::interrupt_acknowledge));
  EXPECT_EQ(records[0].data[0], 8);
  EXPECT_EQ(records[0].instructions, 1u);
  expect_delivery(std::span(records).subspan(1), 8, 1);
}

TEST_F(RealModeTest, AnExceptionLeavesItsInstructionUncounted) {
  begin({0xf6, 0xf1});
  deliver(0, 0);
  log("check_exception old: 0xffffffff new 0x0\n");
  const auto records = start_handler();
  expect_delivery(records, 0, 0);
  EXPECT_EQ(records[0].instructions, 0u);
}

TEST_F(RealModeTest, AnInterruptBehindARepeatedInstructionThatIsDoneReturnsBehindIt) {
  begin({0xf3, 0xaa});
  recorder_->access(insn_, true, 0x3000, 0x3000, false, std::vector<std::uint8_t>{7});
  (void)seen();
  registers_.state_.gpr[1] = 0;
  deliver(8, 0);
  log("Servicing hardware INT=0x08\n");
  const auto records = start_handler();
  ASSERT_EQ(records.size(), 5u);
  EXPECT_EQ(records[0].instructions, 1u);
  expect_delivery(std::span(records).subspan(1), 8, 2);
  EXPECT_EQ(ram_[kStack + kTop - 6], 2) << "the machine goes on with what its bus has shown";
}

// ---- NMIs, of which nothing tells
// ---------------------------------------------------------------

class NmiTest : public RealModeTest {
 protected:
  /// The handler's flags, for the frames that deliver() makes.
  void SetUp() override {
    RealModeTest::SetUp();
    registers_.state_.eflags = 0x0046;
  }
  static bool any_nmi(std::span<const Seen> records) {
    return std::any_of(records.begin(), records.end(),
                       [](const Seen& s) { return s.type == static_cast<int>(RecordType::nmi); });
  }
};

TEST_F(NmiTest, IsShownBehindTheInstructionByTheFrameThatItPushed) {
  begin({0x90});
  deliver(2, 1);
  const auto records = start_handler();
  ASSERT_EQ(records.size(), 5u);
  EXPECT_EQ(records[0].type, static_cast<int>(RecordType::nmi));
  EXPECT_EQ(records[0].instructions, 1u);
  expect_delivery(std::span(records).subspan(1), 2, 1);
}

TEST_F(NmiTest, LeavesARepeatedInstructionToGoOn) {
  begin({0xf3, 0xaa});
  recorder_->access(insn_, true, 0x3000, 0x3000, false, std::vector<std::uint8_t>{7});
  (void)seen();
  registers_.state_.gpr[1] = 5;
  deliver(2, 0);
  const auto records = start_handler();
  ASSERT_TRUE(any_nmi(records));
  EXPECT_EQ(records[0].instructions, 0u);
  EXPECT_EQ(records[0].iterations, 1u);
}

TEST_F(NmiTest, BehindASoftwareInterruptIsTheSecondOfTwoDeliveries) {
  begin({0xcd, 0x21});
  deliver(0x21, 2);
  const std::uint16_t frame[3] = {kHandler, kHandlerSegment, 0x0046};
  std::memcpy(ram_ + 8, ram_ + 4 * 0x21, 4);
  registers_.state_.gpr[4] -= sizeof frame;
  std::memcpy(ram_ + kStack + registers_.state_.gpr[4], frame, sizeof frame);
  const auto records = start_handler();
  ASSERT_EQ(records.size(), 9u);
  expect_delivery(std::span(records).first(4), 0x21, 2);
  EXPECT_EQ(records[4].type, static_cast<int>(RecordType::nmi));
  EXPECT_EQ(records[4].instructions, 1u);
}

TEST_F(NmiTest, IsNoneThatAProgramMakesItselfByInt2OrByACallOfItsHandler) {
  begin({0xcd, 0x02});
  deliver(2, 2);
  EXPECT_FALSE(any_nmi(start_handler()));
  registers_.state_.segment[1] = {kCodeSegment, kCode, 0xffff, 0x9b00};
  registers_.state_.gpr[4] = kTop;
  recorder_.emplace(memory_, *sink_, log_, registers_, CacheModel::none);
  begin({0x9a, 0x44, 0x44, 0x00, 0x30});
  deliver(2, 5);
  EXPECT_FALSE(any_nmi(start_handler()));
}

TEST_F(NmiTest, GoesThroughTheTableThatLidtHasLoaded) {
  begin({0x90});
  const Insn load = insn_at(kCode + 1, {0x0f, 0x01, 0x1e, 0x00, 0x06});
  registers_.state_.ip = 1;
  recorder_->start(load);
  (void)seen();
  registers_.state_.idt_base = 0x500;
  deliver(2, 6);
  std::memcpy(ram_ + 0x508, ram_ + 8, 4);
  std::memset(ram_ + 8, 0, 4);
  EXPECT_TRUE(any_nmi(start_handler()));
}

TEST_F(NmiTest, IsNoneWhereTheFrameLeadsElsewhere) {
  begin({0xeb, 0x10});
  deliver(2, 0x12);
  ram_[kStack + kTop - 4] = 0x77;  // another segment
  EXPECT_FALSE(any_nmi(start_handler()));
}

TEST_F(RealModeTest, AProgramThatGoesOnElsewhereAndNothingTellsWhyEndsTheRecording) {
  begin({0x90});
  registers_.state_.ip = 0x77;
  const Insn next = insn_at(kCode + 0x77, {0x90});
  recorder_->start(next);
  EXPECT_FALSE(recorder_->active());
}

TEST_F(RealModeTest, AResetRightBehindAnInterruptEndsTheRecording) {
  begin({0x90});
  log("Servicing hardware INT=0x08\nCPU Reset (CPU 0)\nEFER=0000000000000000\n");
  registers_.state_.segment[1] = {0xf000, 0xffff0000, 0xffff, 0x9b00};
  registers_.state_.ip = 0xfff0;
  const Insn next = insn_at(kCode + 0x100, {0x90});
  recorder_->start(next);
  EXPECT_FALSE(recorder_->active());
  EXPECT_TRUE(seen().empty());
}

TEST_F(RealModeTest, ASegmentKeepsTheBaseItHadBeforeItIsLoaded) {
  registers_.state_.segment[1] = {0xf000, 0x100000, 0xffff, 0x9b00};
  insn_ = insn_at(0x100000, {0xea, 0x44, 0x44, 0x00, 0x30});
  registers_.state_.ip = 0;
  recorder_->begin(insn_, 0);
  recorder_->start(insn_);
  (void)seen();
  registers_.state_.segment[1] = {kHandlerSegment, kHandlerSegment << 4, 0xffff, 0x9b00};
  registers_.state_.ip = kHandler;
  const Insn next = insn_at((kHandlerSegment << 4) + kHandler, {0x90});
  recorder_->start(next);
  const auto records = seen();
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records[0].address, (kHandlerSegment << 4) + std::uint32_t{kHandler});
}

// ---- firmware -----------------------------------------------------------------------------------

/// What `address_at_rom` reads: each byte is the low one of its address.
void address_at_rom(std::uint64_t address, void* bytes, std::uint64_t size, bool store) {
  for (std::uint64_t k = 0; k < size && !store; ++k)
    static_cast<std::uint8_t*>(bytes)[k] = static_cast<std::uint8_t>(address + k);
}

TEST_F(BusTest, FirmwareIsFetchedByDwordsEachOnce) {
  memory_.set_physical_access(address_at_rom);
  BusModel bus(memory_, *sink_, CacheModel::i486);
  bus.clear();
  bus.fetch(0xfffffff0, std::vector<std::uint8_t>{0xf0, 0xf1}, false);
  bus.fetch(0xfffffff2, std::vector<std::uint8_t>{0xf2, 0xf3, 0xf4}, true);
  const auto records = seen();
  ASSERT_EQ(records.size(), 2u);
  for (unsigned n = 0; n < 2; ++n) {
    EXPECT_EQ(records[n].address, 0xfffffff0u + 4 * n);
    EXPECT_EQ(records[n].size, 4);
    EXPECT_EQ(records[n].data[3], 0xf3 + 4 * n);
  }
}

TEST_F(BusTest, ScreenMemoryIsFetchedAsItIsExecuted) {
  memory_.set_physical_access(address_at_rom);
  BusModel bus(memory_, *sink_, CacheModel::none);
  bus.clear();
  bus.fetch(0xb8000, std::vector<std::uint8_t>{1}, false);
  bus.fetch(0xb8001, std::vector<std::uint8_t>{2}, true);
  const auto records = seen();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].size, 1);
  EXPECT_EQ(records[1].address, 0xb8001u);
}

}  // namespace
}  // namespace citcat::monitor
