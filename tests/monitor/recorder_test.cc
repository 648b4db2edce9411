// The recorder, told by hand what an emulator tells it: what a processor would have shown instead.

#include "monitor/recorder/recorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "tests/monitor/recorder_fixture.h"

namespace citcat::monitor {
namespace {

class RecorderTest : public RecorderFixture {
 protected:
  static constexpr std::uint32_t kCode = 0x100000, kHandler = 0x108000, kSource = 0x200000,
                                 kDestination = 0x210000, kStack = 0x280000, kIdt = 0x300000,
                                 kGdt = 0x301000;

  void SetUp() override {
    RecorderFixture::SetUp();
    recorder_.emplace(memory_, *sink_, log_, registers_, CacheModel::none);
  }

  /// The recording begins with this instruction at kCode.
  void begin(std::initializer_list<std::uint8_t> bytes) {
    insn_.linear = insn_.physical = registers_.state_.ip = kCode;
    insn_.size = static_cast<std::uint8_t>(bytes.size());
    insn_.first_in_block = true;
    std::copy(bytes.begin(), bytes.end(), insn_.bytes.begin());
    std::copy(bytes.begin(), bytes.end(), ram_ + kCode);
    insn_.what = classify({insn_.bytes.data(), insn_.size}, CodeSize::bits32);
    recorder_->begin(insn_, 0);
    ASSERT_TRUE(recorder_->active());
    recorder_->start(insn_);
    (void)seen();
  }
  /// The next instruction, behind the one before, or `at` another place.
  void next(std::initializer_list<std::uint8_t> bytes, std::optional<std::uint32_t> at = {}) {
    const Insn& before = following_.empty() ? insn_ : following_.back();
    following_.push_back(
        insn(at.value_or(static_cast<std::uint32_t>(before.linear) + before.size), bytes));
    registers_.state_.ip = following_.back().linear;
    recorder_->start(following_.back());
  }
  void load(std::uint32_t address, std::size_t size) {
    recorder_->access(insn_, false, address, address, false, {ram_ + address, size});
  }
  void store_to_device(std::uint32_t address, std::size_t size) {
    recorder_->access(insn_, true, address, address, true, {ram_ + address, size});
  }
  /// A page fault there of the instruction in flight, as the emulator logs it, and the handler.
  void page_fault(std::uint32_t address) {
    const auto pc = static_cast<std::uint32_t>(registers_.state_.ip);
    const std::uint32_t gate[2] = {8u << 16 | (kHandler & 0xffff),
                                   (kHandler & 0xffff0000) | 0x8e00};
    const std::uint32_t code[2] = {0xffff, 0x00cf9b00};
    std::memcpy(ram_ + kIdt + 8 * 14, gate, sizeof gate);
    std::memcpy(ram_ + kGdt + 8, code, sizeof code);
    char text[512];
    const int size =
        std::snprintf(text, sizeof text,
                      "     0: v=0e e=0000 i=0 cpl=0 IP=0008:%08x pc=%08x SP=0010:%08x CR2=%08x\n"
                      "EAX=00000000 EBX=00000000 ECX=00000004 EDX=00000000\n"
                      "ESI=%08x EDI=%08x EBP=00000000 ESP=%08x\n"
                      "DS =0010 00000000 ffffffff 00cf9300 DPL=0 DS   [-WA]\n"
                      "SS =0010 00000000 ffffffff 00cf9300 DPL=0 DS   [-WA]\n"
                      "GDT=     %08x 0000000f\n"
                      "IDT=     %08x 000007ff\n"
                      "CR0=00000001 CR2=00000000 CR3=00000000 CR4=00000000\n"
                      "EFER=0000000000000000\n",
                      pc, pc, kStack, address, kSource, kDestination, kStack, kGdt, kIdt);
    ASSERT_EQ(write(log_file_, text, static_cast<std::size_t>(size)), size);
    next({0x90}, kHandler);
  }
  /// Where data was read of the strings, in the order of the bus.
  std::vector<std::uint32_t> strings_read() {
    std::vector<std::uint32_t> read;
    for (const Seen& s : seen()) {
      const bool string = s.address >= kSource && s.address < kDestination + 0x1000;
      if (s.type == static_cast<int>(RecordType::data_read) && string) read.push_back(s.address);
    }
    return read;
  }

  Insn insn_;
  std::deque<Insn> following_;
  std::optional<Recorder> recorder_;
};

/// A recording of so many instructions has no transaction of another one.
TEST_F(RecorderTest, WhatIsArrivedAtIsNotFetchedYet) {
  begin({0x90});
  next({0x90});
  (void)seen();
  const Insn behind = insn(kCode + 0x2000, {0x90});
  registers_.state_.ip = behind.linear;
  EXPECT_TRUE(recorder_->arrive(behind));
  EXPECT_EQ(recorder_->instructions(), 2u);
  EXPECT_TRUE(seen().empty());
  recorder_->enter(behind);
  EXPECT_FALSE(seen().empty());
}

/// As --start and --stop count:N count: a REP is one, its iterations are counted beside; so is one
/// without an iteration.
TEST_F(RecorderTest, ARepIsOneInstructionHoweverManyIterationsItHas) {
  begin({0xf3, 0xaa});
  for (std::uint32_t n = 0; n < 1000; ++n) {
    if (n != 0) recorder_->start(insn_);
    store_to_device(kDestination + n, 1);
    EXPECT_EQ(recorder_->instructions(), 0u);
  }
  const auto records = seen();
  ASSERT_EQ(records.size(), 1000u);
  EXPECT_EQ(records.back().instructions, 0u);
  EXPECT_EQ(records.back().iterations, 999u);
  // The emulator looks once more to find the count used up.
  recorder_->start(insn_);
  next({0xf3, 0xa6});
  EXPECT_EQ(recorder_->instructions(), 1u);
  next({0xaa});
  EXPECT_EQ(recorder_->instructions(), 2u) << "nothing was repeated";
  recorder_->access(following_.back(), true, kDestination, kDestination, true,
                    {ram_ + kDestination, 1});
  next({0x90});
  EXPECT_EQ(recorder_->instructions(), 3u);
  EXPECT_EQ(seen().back().iterations, 0u);
}

/// QEMU translates a REP twice: with what comes before it, and for all iterations but the first.
TEST_F(RecorderTest, NothingIsSeenOfIterationsWithinALineThatIsHeld) {
  recorder_.emplace(memory_, *sink_, log_, registers_, CacheModel::pentium);
  const auto store = [&](const Insn& insn, std::uint32_t at) {
    return recorder_->store_unseen(insn, at, at, {ram_ + at, 1});
  };
  begin({0xf3, 0xaa});
  complete(insn_, nullptr, CacheModel::pentium);
  EXPECT_FALSE(store(insn_, kDestination)) << "the line is filled";
  recorder_->access(insn_, true, kDestination, kDestination, false, {ram_ + kDestination, 1});
  Insn again = insn(kCode, {0xf3, 0xaa});
  complete(again, nullptr, CacheModel::pentium);
  recorder_->start(again);
  EXPECT_TRUE(store(again, kDestination + 1));
  EXPECT_TRUE(recorder_->iterate_plainly(again));
  EXPECT_TRUE(store(again, kDestination + 2));
  next({0x90});
  EXPECT_EQ(recorder_->instructions(), 1u);
}

/// Whatever of them the bus has shown: behind an instruction that was fetched with the one before
/// it nothing is.
TEST_F(RecorderTest, TheEndSaysHowManyInstructionsAreComplete) {
  begin({0x90});
  next({0x90});
  const Insn behind = insn(kCode + 2, {0x90});
  registers_.state_.ip = behind.linear;
  EXPECT_TRUE(recorder_->arrive(behind));
  (void)seen();
  recorder_->end("trigger");
  const std::vector<Seen> records = seen();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].type, 21);
  EXPECT_EQ(records[0].instructions, 2u);
}

TEST_F(RecorderTest, WhatCannotBeRecordedFurtherDoesNotSay) {
  begin({0x90});
  (void)seen();
  recorder_->end("error");
  EXPECT_TRUE(seen().empty());
}

// The emulator reads the operands of CMPS the other way round.

TEST_F(RecorderTest, CmpsReadsItsSourceFirst) {
  begin({0xa7});
  load(kDestination, 4);
  EXPECT_TRUE(seen().empty()) << "held back";
  load(kSource, 4);
  const auto records = seen();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].address, kSource);
  EXPECT_EQ(records[1].address, kDestination);
  for (const Seen& s : records) {
    EXPECT_EQ(s.type, static_cast<int>(RecordType::data_read));
    EXPECT_EQ(s.size, 4);
    EXPECT_TRUE(std::equal(ram_ + s.address, ram_ + s.address + 4, s.data.begin()));
  }
}

TEST_F(RecorderTest, EachIterationOfCmpsReadsItsSourceFirst) {
  begin({0xf3, 0xa6});
  for (std::uint32_t n = 0; n < 2; ++n) {
    if (n != 0) recorder_->start(insn_);
    load(kDestination + n, 1);
    load(kSource + n, 1);
  }
  const auto records = seen();
  ASSERT_EQ(records.size(), 4u);
  for (std::uint32_t n = 0; n < 2; ++n) {
    EXPECT_EQ(records[2 * n].address, kSource + n);
    EXPECT_EQ(records[2 * n + 1].address, kDestination + n);
    EXPECT_EQ(records[2 * n].iterations, n);
    EXPECT_EQ(records[2 * n + 1].iterations, n);
  }
}

TEST_F(RecorderTest, CmpsHasReadItsSourceWhenItsDestinationFaults) {
  begin({0xa7});
  page_fault(kDestination);
  EXPECT_EQ(strings_read(), std::vector{kSource});
}

TEST_F(RecorderTest, CmpsHasReadNothingWhenItsSourceFaults) {
  begin({0xa7});
  load(kDestination, 4);
  page_fault(kSource);
  EXPECT_EQ(strings_read(), std::vector<std::uint32_t>{});
}

// The emulator begins an instruction again that stores to a device, and does not say that it does.

TEST_F(RecorderTest, APopToADeviceReadsTheStackOnce) {
  begin({0x8f, 0x00});
  load(kSource, 4);
  load(kSource, 4);
  store_to_device(kDestination, 4);
  const auto records = seen();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].address, kSource);
  EXPECT_EQ(records[1].address, kDestination);
}

TEST_F(RecorderTest, EachIterationOfMovsToADeviceReadsItsSourceOnce) {
  begin({0xf3, 0xa5});
  for (std::uint32_t n = 0; n < 3; ++n) {
    if (n != 0) recorder_->start(insn_);
    load(kSource + 4 * n, 4);
    if (n != 1) load(kSource + 4 * n, 4);
    store_to_device(kDestination + 4 * n, 4);
  }
  const auto records = seen();
  ASSERT_EQ(records.size(), 6u);
  for (std::uint32_t n = 0; n < 3; ++n) {
    EXPECT_EQ(records[2 * n].address, kSource + 4 * n);
    EXPECT_EQ(records[2 * n + 1].address, kDestination + 4 * n);
    EXPECT_EQ(records[2 * n].iterations, n);
    EXPECT_EQ(records[2 * n + 1].iterations, n);
  }
}

TEST_F(RecorderTest, MovsOfOnePlaceOverAndOverReadsItEachTime) {
  begin({0xa5});
  for (std::uint32_t n = 0; n < 2; ++n) {
    load(kSource, 4);
    store_to_device(kDestination, 4);
  }
  EXPECT_EQ(seen().size(), 4u);
}

TEST_F(RecorderTest, APushedSegmentRegisterLeavesTheUpperHalfOfItsSlotAlsoInAnotherPage) {
  // The second of two pages lies in front of the first one.
  constexpr std::uint32_t kDirectory = 0x308000, kTable = 0x309000, kSlot = 0x203ffe,
                          kUpperHalf = 0x202000;
  const auto entry = [this](std::uint32_t at, std::uint32_t value) {
    std::memcpy(ram_ + at, &value, sizeof value);
  };
  entry(kDirectory, kTable | 0x67);
  for (std::uint32_t page = 0; page < 0x400; ++page) entry(kTable + 4 * page, page << 12 | 0x67);
  entry(kTable + 4 * 0x204, kUpperHalf | 0x07);
  registers_.state_.cr0 = 0x80000001;
  registers_.state_.cr3 = kDirectory;
  begin({0x1e});
  const std::vector<std::uint8_t> before(ram_ + kUpperHalf, ram_ + kUpperHalf + 2);
  const std::vector<std::uint8_t> pushed{0x10, 0, 0, 0};
  std::copy_n(pushed.begin(), 2, ram_ + kSlot);
  std::copy_n(pushed.begin() + 2, 2, ram_ + kUpperHalf);
  entry(kTable + 4 * 0x204, kUpperHalf | 0x67);
  recorder_->access(insn_, true, kSlot, kSlot, false, pushed);
  EXPECT_EQ(std::vector<std::uint8_t>(ram_ + kUpperHalf, ram_ + kUpperHalf + 2), before);
  const auto records = seen();
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records.back().address, kSlot);
  EXPECT_EQ(records.back().size, 2);
  EXPECT_EQ(ram_[kTable + 4 * 0x204], 0x07) << "nothing was stored there";
}

TEST_F(RecorderTest, ShowsWhatAProcessorPushesAndLeavesAloneWhatARepeatedRunHasStored) {
  constexpr std::uint32_t kSlot = 0x200000;
  memory_.only_observe();
  ram_[kCode + 1] = 0x8b, ram_[kCode + 2] = 0x00;
  begin({0x1e});
  const std::vector<std::uint8_t> pushed{0x10, 0, 0, 0};
  std::copy_n(pushed.begin(), 4, ram_ + kSlot);
  recorder_->access(insn_, true, kSlot, kSlot, false, pushed);
  EXPECT_EQ(std::vector<std::uint8_t>(ram_ + kSlot, ram_ + kSlot + 4), pushed);
  auto records = seen();
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records.back().size, 2);
  // What the emulator did besides is another bus master's doing when it is read.
  next({0x8b, 0x00}, kCode + 1);
  recorder_->access(following_.back(), false, kSlot, kSlot, false, pushed);
  records = seen();
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(std::vector<std::uint8_t>(records.back().data.begin(), records.back().data.begin() + 4),
            pushed);
  EXPECT_EQ(recorder_->totals().external, 1u);
}

/// The flags of an interrupt's frame, in which the emulator has set RF.
TEST_F(RecorderTest, AReturnInARepeatedRunReadsWhatAProcessorHasPushedAndSoftwareWhatIsThere) {
  constexpr std::uint32_t kFlags = kStack + 8;
  const std::vector<std::uint8_t> emulators{0x02, 0x02, 0x01, 0x00}, own{0x02, 0x02, 0x00, 0x00};
  memory_.only_observe();
  ram_[kCode + 1] = 0x8b, ram_[kCode + 2] = 0x00;
  begin({0xcf});
  std::copy_n(emulators.begin(), 4, ram_ + kFlags);
  std::copy_n(own.begin(), 4, memory_.shadow(kFlags));
  memory_.correct(kFlags, own, Notice::of_resume);
  const auto last_read = [this] {
    const auto records = seen();
    const auto& data = records.back().data;
    return std::vector<std::uint8_t>(data.begin(), data.begin() + 4);
  };
  recorder_->access(insn_, false, kFlags, kFlags, false, emulators);
  EXPECT_EQ(last_read(), own);
  EXPECT_EQ(recorder_->totals().external, 0u);
  next({0x8b, 0x00}, kCode + 1);
  recorder_->access(following_.back(), false, kFlags, kFlags, false, emulators);
  EXPECT_EQ(last_read(), emulators);
  EXPECT_EQ(recorder_->totals().external, 1u);
  EXPECT_EQ(std::vector<std::uint8_t>(ram_ + kFlags, ram_ + kFlags + 4), emulators);
}

/// Line by line, what is beside such a byte is still known, and the byte itself said to be the
/// emulator's.
TEST_F(RecorderTest, AByteThatTheEmulatorHasStoredIsNobodysChangeUntilSoftwareReadsIt) {
  constexpr std::uint32_t kByte = kSource + 4;
  memory_.only_observe();
  int control[2];
  ASSERT_EQ(pipe2(control, O_NONBLOCK), 0);
  RecordSink sink(write_end_, control[1]);
  BusModel bus(memory_, sink, CacheModel::pentium);
  BusTest::load(bus, kSource, 4);
  const auto processors = static_cast<std::uint8_t>(ram_[kByte] ^ 1);
  memory_.correct(kByte, {&processors, 1});
  *memory_.shadow(kByte) = processors;
  BusTest::load(bus, kSource + 8, 4);
  EXPECT_EQ(bus.external_changes(), 0u);
  char text[256];
  EXPECT_LT(read(control[0], text, sizeof text), 0) << "nothing was said";
  BusTest::load(bus, kByte, 1);
  EXPECT_EQ(bus.external_changes(), 1u);
  const ssize_t size = read(control[0], text, sizeof text);
  ASSERT_GT(size, 0);
  char expected[256];
  std::snprintf(expected, sizeof expected, "value 0,STORED,0,%08x,00000001,%08x,00000000\n",
                ram_[kByte], kByte);
  EXPECT_EQ(std::string(text, static_cast<std::size_t>(size)), expected);
  close(control[0]);
  close(control[1]);
}

/// The index of a ring of virtio goes from 2 to 3; what might be the accessed bit of a descriptor
/// is a device's only where that has filled in something else.
TEST_F(RecorderTest, ABitThatADeviceHasChangedIsSaidToBeItsOwnUnlessItMayBeAMark) {
  constexpr std::uint32_t kIndex = kSource + 2, kType = kSource + 5, kEntry = kSource + 0x104;
  const struct {
    std::uint32_t address;
    bool more, said;
  } cases[] = {
      {kIndex, false, true}, {kIndex, true, true}, {kType, false, false}, {kType, true, true}};
  for (const CacheModel model : {CacheModel::none, CacheModel::i486, CacheModel::pentium}) {
    for (const auto& c : cases) {
      int control[2];
      ASSERT_EQ(pipe2(control, O_NONBLOCK), 0);
      RecordSink sink(write_end_, control[1]);
      ASSERT_TRUE(memory_.snapshot());
      BusModel bus(memory_, sink, model);
      BusTest::load(bus, c.address, 1);
      ram_[c.address] ^= 1;
      if (c.more) ram_[kEntry] ^= 7;
      BusTest::load(bus, c.address, 1);
      EXPECT_EQ(bus.external_changes(), 1u);
      char text[256];
      EXPECT_EQ(read(control[0], text, sizeof text) > 0, c.said)
          << static_cast<int>(model) << " " << c.address << " " << c.more;
      close(control[0]);
      close(control[1]);
    }
  }
}

/// The type of a descriptor lies in a table of descriptors; elsewhere such a bit is a device's.
TEST_F(RecorderTest, ABitMayBeADescriptorsMarkOnlyInATableOfThem) {
  constexpr std::uint32_t kTable = kSource + 0x40, kLdt = kSource + 0x100;
  registers_.state_.gdt_base = kTable;
  registers_.state_.gdt_limit = 0x17;
  registers_.state_.ldtr = {0x10, kLdt, 7, 0};
  Observation seen(memory_, *sink_, log_, registers_, CacheModel::none);
  for (const std::uint32_t held : {kTable, kTable + 0x17, kLdt, kLdt + 7})
    EXPECT_TRUE(seen.tables.hold(held)) << held;
  for (const std::uint32_t other : {kTable - 1, kTable + 0x18, kLdt - 1, kLdt + 8})
    EXPECT_FALSE(seen.tables.hold(other)) << other;
  for (const bool holds : {false, true}) {
    int control[2];
    ASSERT_EQ(pipe2(control, O_NONBLOCK), 0);
    RecordSink sink(write_end_, control[1]);
    ASSERT_TRUE(memory_.snapshot());
    BusModel bus(memory_, sink, CacheModel::i486);
    bus.set_descriptors([&](PhysicalAddress) { return holds; });
    BusTest::load(bus, kSource + 5, 1);
    ram_[kSource + 5] ^= 1;
    BusTest::load(bus, kSource + 5, 1);
    char text[256];
    EXPECT_EQ(read(control[0], text, sizeof text) > 0, !holds);
    close(control[0]);
    close(control[1]);
  }
}

TEST_F(RecorderTest, ABitBeyond4GiBIsSaidToBeADevicesAtItsOwnAddress) {
  int control[2];
  ASSERT_EQ(pipe2(control, O_NONBLOCK), 0);
  place_high_memory();
  constexpr PhysicalAddress kPage = 0x100023000;
  constexpr std::uint32_t kOwn = 0x23000;
  RecordSink sink(write_end_, control[1]);
  ASSERT_TRUE(memory_.snapshot());
  BusModel bus(memory_, sink, CacheModel::none);
  bus.read(kPage + 2, {memory_.live(kPage + 2), 2});
  ram_[kHighRam + kOwn + 2] ^= 1;
  ram_[kHighRam + kOwn + 0x104] ^= 7;
  bus.read(kPage + 2, {memory_.live(kPage + 2), 2});
  char text[256] = {};
  ASSERT_GT(read(control[0], text, sizeof text - 1), 0);
  EXPECT_NE(std::string(text).find(",00000001,100023002,"), std::string::npos) << text;
  close(control[0]);
  close(control[1]);
}

TEST_F(RecorderTest, ARepThatStoresOverItselfEndsWithTheFetchOfWhatIsThereThen) {
  begin({0xf3, 0xaa});
  recorder_->access(insn_, true, kCode + 1, kCode + 1, false, std::vector<std::uint8_t>{0x90});
  (void)seen();
  next({0xf3, 0x90}, kCode);
  const auto records = seen();
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records[0].type, static_cast<int>(RecordType::code_read));
  EXPECT_EQ(records[0].address, kCode);
  EXPECT_EQ(records[0].instructions, 0u) << "the REP never ended";
}

TEST_F(RecorderTest, AFarReturnOverTheEndOfTheStackSegmentEndsTheRecording) {
  registers_.state_.cr0 = 0;
  for (LoggedSegment& s : registers_.state_.segment) s = {0, 0, 0xffff, 0x9300};
  for (const std::uint32_t sp : {0xfffcu, 0xfffeu}) {
    registers_.state_.gpr[4] = sp;
    begin({0x66, 0xcb});
    EXPECT_EQ(recorder_->active(), sp == 0xfffc);
  }
}

// The emulator puts all x87 registers in use before an MMX instruction gets to its operand.

class FaultOfMmx : public RecorderTest {
 protected:
  static constexpr std::uint32_t kImage = 0x220000, kTagsAt = 4;
  /// FXSAVE behind the fault, with what the emulator stores as the tag word; what is shown.
  std::uint8_t saved(std::uint8_t emulated) {
    registers_.state_.gpr[0] = kImage;
    next({0x0f, 0xae, 0x00});
    ram_[kImage + kTagsAt] = emulated;
    next({0x90});
    return ram_[kImage + kTagsAt];
  }
};

TEST_F(FaultOfMmx, LeavesX87RegistersAsTheyWere) {
  begin({0xdb, 0xe3});       // FNINIT
  next({0x0f, 0x6f, 0x01});  // MOVQ MM0, [ECX]
  page_fault(kSource);
  EXPECT_EQ(saved(0xff), 0);
}

TEST_F(FaultOfMmx, IsForgottenOnceItIsExecuted) {
  begin({0xdb, 0xe3});
  next({0x0f, 0x6f, 0x01});
  page_fault(kSource);
  next({0x0f, 0x6f, 0x01});
  EXPECT_EQ(saved(0xff), 0xff);
}

TEST_F(FaultOfMmx, EndsTheRecordingWhereX87CodeWouldGoByIt) {
  begin({0xdb, 0xe3});
  next({0x0f, 0x6f, 0x01});
  page_fault(kSource);
  next({0xd9, 0xe8});  // FLD1
  next({0x90});
  EXPECT_FALSE(recorder_->active());
}

// Intel SDM vol. 2, WRMSR.
TEST_F(RecorderTest, EndsWhereAnAddressIsWrittenThatProcessorsRefuse) {
  struct Written {
    std::uint64_t msr, value;
    bool long_mode, goes_on;
  };
  for (const Written& w : {Written{0xc0000100, 0x0000aaaaaaaaaaaa, true, false},
                           {0xc0000082, 0x8000000000000000, true, false},
                           {0x176, 0xffff7fffffffffff, true, false},
                           {0xc0000101, 0xffff800000000000, true, true},
                           {0xc0000102, 0x00007fffffffffff, true, true},
                           {0x10, 0x0000aaaaaaaaaaaa, true, true},
                           {0x176, 0x0000aaaaaaaaaaaa, false, true}}) {
    SCOPED_TRACE(w.msr);
    recorder_.emplace(memory_, *sink_, log_, registers_, CacheModel::none);
    following_.clear();
    registers_.long_mode_.reset();
    if (w.long_mode) registers_.long_mode_.emplace();
    registers_.state_.gpr[0] = static_cast<std::uint32_t>(w.value);
    registers_.state_.gpr[1] = w.msr;
    registers_.state_.gpr[2] = w.value >> 32;
    begin({0x0f, 0x30});
    next({0x90});
    EXPECT_EQ(recorder_->active(), w.goes_on);
  }
}

}  // namespace
}  // namespace citcat::monitor
