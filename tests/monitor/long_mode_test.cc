// Long mode in the monitor's parts, without an emulator: how instructions are told apart there,
// walks through four levels, the emulator's log, deliveries, and the state that a recording begins
// with.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "driver-kmod/uapi/citcat_dump.h"
#include "monitor/recorder/recorder.h"
#include "tests/monitor/recorder_fixture.h"

namespace citcat::monitor {
namespace {

InsnClass classified64(std::initializer_list<std::uint8_t> bytes) {
  const std::vector<std::uint8_t> copy(bytes);
  return classify(copy, CodeSize::bits64);
}

TEST(LongModeInsn, KnowsRandomNumbersAndWhereTheyGo) {
  const auto of = [](std::vector<std::uint8_t> bytes, CodeSize size) {
    const InsnClass what = classify(bytes, size);
    return std::tuple(what.kind, unsigned{what.destination}, unsigned{what.operand_bytes});
  };
  const auto bits64 = CodeSize::bits64;
  using Expected = std::tuple<InsnKind, unsigned, unsigned>;
  EXPECT_EQ(of({0x0f, 0xc7, 0xf1}, bits64), Expected(InsnKind::rdrand, 1u, 4u));
  EXPECT_EQ(of({0x48, 0x0f, 0xc7, 0xf0}, bits64), Expected(InsnKind::rdrand, 0u, 8u));
  EXPECT_EQ(of({0x49, 0x0f, 0xc7, 0xfa}, bits64), Expected(InsnKind::rdseed, 10u, 8u));
  EXPECT_EQ(of({0x66, 0x0f, 0xc7, 0xf2}, bits64), Expected(InsnKind::rdrand, 2u, 2u));
  EXPECT_EQ(of({0x0f, 0xc7, 0xf2}, CodeSize::bits16), Expected(InsnKind::rdrand, 2u, 2u));
  EXPECT_EQ(classify(std::vector<std::uint8_t>{0xf3, 0x0f, 0xc7, 0xf8}, bits64).kind,
            InsnKind::plain)
      << "RDPID";
}

TEST(LongModeInsn, TellsBitManipulationFromVectors) {
  const auto kind = [](std::vector<std::uint8_t> bytes) {
    return classify(bytes, CodeSize::bits64).kind;
  };
  EXPECT_EQ(kind({0xc4, 0xe2, 0x70, 0xf2, 0xc2}), InsnKind::plain) << "ANDN";
  EXPECT_EQ(kind({0xc4, 0xe2, 0xf3, 0xf6, 0x03}), InsnKind::plain) << "MULX";
  EXPECT_EQ(kind({0xc4, 0xe3, 0x7b, 0xf0, 0xc1, 5}), InsnKind::plain) << "RORX";
  EXPECT_EQ(kind({0xc4, 0xe2, 0x79, 0x18, 0x03}), InsnKind::vector) << "VBROADCASTSS";
  EXPECT_EQ(kind({0xc5, 0xf8, 0x77}), InsnKind::vector) << "VZEROUPPER";
  EXPECT_EQ(kind({0x62, 0xf1, 0x7c, 0x48, 0x28, 0xc1}), InsnKind::vector) << "EVEX";
}

TEST(LongModeInsn, TakesRexForAPrefix) {
  EXPECT_EQ(classified64({0xf3, 0x48, 0xa5}).operand_bytes, 8);  // REP MOVSQ
  EXPECT_TRUE(classified64({0xf3, 0x48, 0xa5}).repeated);
  EXPECT_EQ(classified64({0xf3, 0xa5}).operand_bytes, 4);
  EXPECT_EQ(classified64({0x48, 0xed}).operand_bytes, 4);  // ports have no eight bytes
  EXPECT_TRUE(classified64({0x0f, 0x22, 0xd8}).loads_cr3);
  EXPECT_FALSE(classified64({0x44, 0x0f, 0x22, 0xd8}).loads_cr3);  // of no register
  EXPECT_EQ(classified64({0x48, 0x0f, 0xae, 0x00}).rex, 0x48);
  EXPECT_EQ(classified64({0x67, 0x0f, 0xae, 0x00}).address_bytes, 4);
  EXPECT_EQ(classified64({0x0f, 0xae, 0x00}).address_bytes, 8);
}

TEST(LongModeInsn, KnowsWhatOpcodesMeanThereAlone) {
  EXPECT_EQ(classified64({0x06}).kind, InsnKind::plain);
  EXPECT_EQ(classified64({0x0f, 0xa0}).kind, InsnKind::plain);  // eight bytes, as anything pushed
  EXPECT_EQ(classified64({0xc5, 0xf8, 0x77}).kind, InsnKind::vector);
  EXPECT_EQ(classified64({0x0f, 0x01, 0xf9}).kind, InsnKind::rdtscp);
  EXPECT_EQ(classified64({0x0f, 0x01, 0xd0}).kind, InsnKind::xgetbv);
  EXPECT_EQ(classified64({0x0f, 0x01, 0xd1}).kind, InsnKind::xsetbv);
  EXPECT_EQ(classified64({0x0f, 0xae, 0x38}).kind, InsnKind::flush_line);
  EXPECT_TRUE(classified64({0x0f, 0x05}).calls_system);
  EXPECT_TRUE(classified64({0x48, 0x0f, 0x07}).branch);
  EXPECT_EQ(classified64({0x48, 0xcf}).kind, InsnKind::iret);
}

class FourLevelWalk : public BusTest {
 protected:
  static constexpr std::uint32_t kTop = 0x300000, kPointers = 0x301000, kDirectory = 0x302000,
                                 kTable = 0x303000;
  static constexpr std::uint64_t kHigh = 0xffffffff80000000;  // entries 511 and 510

  void SetUp() override {
    BusTest::SetUp();
    std::memset(ram_ + kTop, 0, 0x4000);
    entry(kTop + 8 * 511, kPointers | 0x27);
    entry(kPointers + 8 * 510, kDirectory | 0x27);
    entry(kDirectory, kTable | 0x27);
    entry(kDirectory + 8, 0x80000000002001e3);  // 2 MiB, no-execute
    bus_.emplace(memory_, *sink_, CacheModel::none);
    walker_.emplace(memory_, *bus_);
  }
  void entry(std::uint32_t at, std::uint64_t value) { std::memcpy(ram_ + at, &value, 8); }
  void start() {
    ASSERT_TRUE(memory_.snapshot());
    bus_->clear();
    walker_->set_control({0x80010001, kTop, 0x20, 0xd01}, true);
    (void)seen();
  }

  std::optional<BusModel> bus_;
  std::optional<PageWalker> walker_;
};

TEST_F(FourLevelWalk, WritesAMarkedEntryAsAWhole) {
  entry(kTable + 8 * 5, 0x8000000000123003);
  start();
  ram_[kTable + 8 * 5] = 0x63;  // the emulator has made the store
  EXPECT_EQ(walker_->translate(kHigh + 0x5010, true), 0x123010u);
  const auto records = seen();
  ASSERT_EQ(records.size(), 10u);  // four entries read, one written, in dwords
  EXPECT_EQ(records[6].data[0], 0x03);
  EXPECT_EQ(records[8].type, 3);
  EXPECT_EQ(records[8].data[0], 0x63);
  EXPECT_EQ(records[9].type, 3);
  EXPECT_EQ(records[9].data[3], 0x80);
  EXPECT_EQ(bus_->external_changes(), 0u);
}

/// Entry 510 names its own table: the four levels of a walk through it are one entry, of which the
/// last is what a store makes dirty.
TEST_F(FourLevelWalk, AnEntryOfSeveralLevelsIsDirtyInTheLastOneAlone) {
  constexpr std::uint32_t kSelf = kTop + 8 * 510;
  constexpr std::uint64_t kItself = 0xffffff7fbfdfe000;
  entry(kSelf, kTop | 0x03);
  start();
  ram_[kSelf] = 0x63;  // the emulator has made the store
  EXPECT_EQ(walker_->translate(kItself + 0x10, true), kTop + 0x10);
  std::string marks;
  for (const Seen& s : seen()) {
    if (s.address != kSelf) continue;
    marks += s.type == 3 ? "w" : "r";
    marks += std::to_string(s.data[0] >> 4);
  }
  EXPECT_EQ(marks, "r0w2r2r2r2w6");
  EXPECT_EQ(ram_[kSelf], 0x63);
  EXPECT_EQ(bus_->external_changes(), 0u);
}

TEST_F(FourLevelWalk, EndsAtALargePage) {
  start();
  EXPECT_EQ(walker_->translate(kHigh + 0x345678, true), 0x345678u);
  EXPECT_EQ(seen().size(), 6u);
  EXPECT_EQ(walker_->locate(kHigh + 0x3fffff), 0x3fffffu);
}

TEST_F(FourLevelWalk, AFaultTakesTheEmulatorsMarksBack) {
  entry(kDirectory, kTable | 0x07);
  start();
  ram_[kDirectory] |= 0x20;  // on the way to an entry that is not present
  walker_->faulting_walk(kHigh + 0x6000);
  EXPECT_EQ(ram_[kDirectory], 0x07);
  for (const Seen& s : seen()) EXPECT_EQ(s.type, 2);
}

TEST_F(FourLevelWalk, FindsPagesBeyond4GiB) {
  place_high_memory();
  entry(kTable + 8, 0x100023067);
  start();
  EXPECT_EQ(walker_->translate(kHigh + 0x1010, false), 0x100023010u);
  EXPECT_EQ(memory_.live(0x100023010), ram_ + kHighRam + 0x23010);
  EXPECT_TRUE(memory_.is_ram(0x100023010, 8));
  EXPECT_EQ(walker_->locate(kHigh + 0x1010), 0x100023010u);
}

TEST_F(FourLevelWalk, FindsLargePagesBeyond4GiB) {
  place_high_memory();
  entry(kDirectory + 8, 0x1000000e7);
  start();
  EXPECT_EQ(walker_->translate(kHigh + 0x2ff008, false), 0x1000ff008u);
  EXPECT_EQ(memory_.live(0x1000ff008), ram_ + kHighRam + 0xff008);
  EXPECT_TRUE(memory_.is_ram(0x1000fffff, 1));
  EXPECT_FALSE(memory_.is_ram(0x1000fffff, 2)) << "behind the end of RAM";
  EXPECT_EQ(walker_->translate(kHigh + 0x345678, false), 0x100145678u);
  EXPECT_FALSE(memory_.is_ram(0x100145678, 1)) << "behind the end of RAM";
  EXPECT_FALSE(memory_.is_ram(0x45678, 0x400000)) << "below, behind what is there";
}

/// Where linear memory is physical memory, and a second time at its upper end.
class LongModeRecorder : public RecorderFixture {
 protected:
  static constexpr std::uint32_t kTop = 0x300000, kPointers = 0x301000, kDirectory = 0x302000,
                                 kIdt = 0x310000, kGdt = 0x320000, kTask = 0x330000,
                                 kCode = 0x100000, kInterruptStack = 0x240000;

  void SetUp() override {
    RecorderFixture::SetUp();
    std::memset(ram_ + kTop, 0, 0x40000);
    for (const unsigned top : {0u, 511u}) quad(kTop + 8 * top, kPointers | 0x67);
    for (const unsigned pointer : {0u, 510u}) quad(kPointers + 8 * pointer, kDirectory | 0x67);
    for (unsigned n = 0; n < 2; ++n) quad(kDirectory + 8 * n, 0x200000 * n | 0xe7);
    quad(kIdt + 16 * 14, 0x00128e0100080000 | 0x3456);  // through the first interrupt stack
    quad(kIdt + 16 * 14 + 8, 0xffffffff);
    quad(kGdt + 8, 0x00af9b000000ffff);
    quad(kTask + 0x24, kInterruptStack + 9);
    LoggedState& now = registers_.state_;
    now.cr0 = 0x80010001;
    now.cr3 = kTop;
    now.cr4 = 0x20;
    now.efer = 0xd01;
    now.code64 = true;
    recorder_.emplace(memory_, *sink_, log_, registers_, CacheModel::none);
  }
  void quad(std::uint32_t at, std::uint64_t value) { std::memcpy(ram_ + at, &value, 8); }
  std::uint64_t quad_at(std::uint32_t at) const {
    std::uint64_t value = 0;
    std::memcpy(&value, ram_ + at, 8);
    return value;
  }
  void begin(std::initializer_list<std::uint8_t> bytes) {
    insn_.linear = registers_.state_.ip = kHigh + kCode;
    insn_.physical = kCode;
    insn_.size = static_cast<std::uint8_t>(bytes.size());
    insn_.first_in_block = true;
    insn_.code = CodeSize::bits64;
    std::copy(bytes.begin(), bytes.end(), insn_.bytes.begin());
    std::copy(bytes.begin(), bytes.end(), ram_ + kCode);
    insn_.what = classify({insn_.bytes.data(), insn_.size}, CodeSize::bits64);
    recorder_->begin(insn_, 0);
  }

  static constexpr unsigned long long kHigh = 0xffffffff80000000;
  Insn insn_;
  std::optional<Recorder> recorder_;
};

TEST_F(LongModeRecorder, BeginsWithAStateOf64Bits) {
  registers_.long_mode_ = LongModeRegisters{3, 1, 2, 0xffff888000000000};
  registers_.state_.gpr[15] = 0x123456789abcdef0;
  recorder_->facts().note_cpuid(7, 1, {1, 2, 3, 4});
  recorder_->facts().note_cpuid(1, 99, {5, 6, 7, 8});
  recorder_->facts().xcr0 = 3;
  begin({0x90});
  std::vector<std::uint32_t> words;
  for (const Seen& s : seen())
    if (s.type == 3) words.push_back(dword_of(s.data));
  const auto word = [&words](unsigned offset) { return words[offset / 4]; };
  EXPECT_EQ(word(CITCAT_STATE_VERSION_OFFSET), 2u);
  EXPECT_EQ(word(CITCAT_STATE2_GPR(15) + 4), 0x12345678u);
  EXPECT_EQ(word(CITCAT_STATE2_RIP + 4), 0xffffffffu);
  EXPECT_EQ(word(CITCAT_STATE2_CR8), 3u);
  EXPECT_EQ(word(CITCAT_STATE2_XCR0), 3u);
  EXPECT_EQ(word(CITCAT_STATE2_CPUID_COUNT), 2u);
  EXPECT_EQ(word(CITCAT_STATE2_CPUID_COUNT + 4), 1u) << "leaves in order";
  constexpr unsigned kMsrs = CITCAT_STATE2_CPUID_COUNT + 4 + 2 * CITCAT_CPUID_BYTES;
  EXPECT_EQ(word(kMsrs), 3u);
  EXPECT_EQ(word(kMsrs + 4 + 2 * CITCAT_MSR_BYTES), 0xc0000102u);
  EXPECT_EQ(words.back(), std::uint32_t{CITCAT_STATE_END});
}

TEST_F(LongModeRecorder, LldtReadsAllOfADescriptor) {
  begin({0x0f, 0x00, 0xd0});
  recorder_->start(insn_);
  (void)seen();
  const std::array<std::uint8_t, 4> value = {};
  for (std::uint32_t n = 0; n < 3; ++n)
    recorder_->access(insn_, false, kHigh + kGdt + 0x50 + 4 * n, kGdt + 0x50 + 4 * n, false, value);
  const auto records = seen();
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records.back().type, 2);
  EXPECT_EQ(records.back().address, kGdt + 0x5c);
}

/// The emulator has met the device of PUSH [RAX], or of what it pushes to, in the middle of a
/// block.
TEST_F(LongModeRecorder, WhatAnInstructionHasReadBeforeItWasBegunAgainIsReadOnce) {
  begin({0xff, 0x30});
  recorder_->start(insn_);
  (void)seen();
  const std::array<std::uint8_t, 8> value = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto load = [&] { recorder_->access(insn_, false, kHigh + 0x1000, 0x1000, false, value); };
  load();
  const auto first = seen().size();
  EXPECT_NE(first, 0u);
  recorder_->start(insn_);
  load();
  EXPECT_TRUE(seen().empty());
  recorder_->access(insn_, true, kHigh + 0x2000, 0x2000, false, value);
  EXPECT_FALSE(seen().empty());
}

TEST(ModelFacts, HaveNoRoomForLeavesOfHypervisors) {
  ModelFacts facts;
  // As SeaBIOS looks for one.
  for (std::uint32_t leaf = 0x40000000; leaf < 0x40010000; leaf += 0x100)
    facts.note_cpuid(leaf, 0, {leaf, 0, 0, 0});
  facts.note_cpuid(0x80000001, 0, {0, 0, 1, 0});
  ASSERT_EQ(facts.cpuid.size(), 1u);
  EXPECT_EQ(facts.cpuid.begin()->first.first, 0x80000001u);
}

/// An instruction that updates memory, on a page of a device that nobody has used yet.
TEST_F(LongModeRecorder, WalksOnceForAnUpdateOfADevicesRegister) {
  constexpr std::uint32_t kDevice = 0xf0000000;
  quad(kDirectory + 8 * 2, kDevice | 0x87);
  begin({0x83, 0x00, 0x01});  // ADD [RAX], 1
  recorder_->start(insn_);
  (void)seen();
  ram_[kDirectory + 8 * 2] = 0xa7;  // the emulator is about to read
  const std::array<std::uint8_t, 4> value = {1, 2, 3, 4};
  recorder_->access(insn_, false, kHigh + 0x400000, kDevice, true, value);
  const auto records = seen();
  ASSERT_EQ(records.size(), 9u) << "four dwords of walks, and of the last entry two written";
  EXPECT_EQ(records[6].type, 3);
  EXPECT_EQ(records[6].data[0], 0xe7);
  EXPECT_EQ(records[8].address, kDevice);
}

TEST_F(LongModeRecorder, DeliversThroughTheInterruptStackTable) {
  begin({0x90});
  recorder_->start(insn_);
  (void)seen();
  char text[1024];
  const int size = std::snprintf(
      text, sizeof text,
      "     0: v=0e e=0002 i=0 cpl=0 IP=0008:%016llx pc=%016llx SP=0010:%016llx CR2=%016llx\n"
      "RAX=0000000000000000 RBX=0000000000000000 RCX=0000000000000000 RDX=0000000000000000\n"
      "RSI=0000000000000000 RDI=0000000000000000 RBP=0000000000000000 RSP=0000000000280000\n"
      "RIP=%016llx RFL=00010246 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=0\n"
      "CS =0008 0000000000000000 ffffffff 00af9b00 DPL=0 CS64 [-RA]\n"
      "SS =0010 0000000000000000 ffffffff 00cf9300 DPL=0 DS   [-WA]\n"
      "TR =0040 %016x 00000067 00008900 DPL=0 TSS64-avl\n"
      "GDT=     %016x 0000007f\n"
      "IDT=     %016x 00000fff\n"
      "CR0=80010001 CR2=0000000000000000 CR3=%016x CR4=00000020\n"
      "EFER=0000000000000d01\n",
      kHigh + kCode, kHigh + kCode, 0x280000ull, kHigh + 0x7000000, kHigh + kCode, kTask, kGdt,
      kIdt, kTop);
  ASSERT_EQ(write(log_file_, text, static_cast<std::size_t>(size)), size);
  // What the emulator has pushed.
  const std::uint32_t frame = kInterruptStack - 48;
  for (unsigned n = 0; n < 6; ++n) quad(frame + 8 * n, n + 1);
  insn_.linear = registers_.state_.ip = kHigh + 0x123456;
  recorder_->start(insn_);
  std::vector<std::uint32_t> written;
  std::vector<std::uint32_t> read;
  for (const Seen& s : seen()) {
    if (s.type == 3) written.push_back(s.address);
    if (s.type == 2) read.push_back(s.address);
  }
  const std::vector<std::uint32_t> pushed = {frame + 40, frame + 44, frame + 32, frame + 36,
                                             frame + 24, frame + 28, frame + 16, frame + 20,
                                             frame + 8,  frame + 12, frame,      frame + 4};
  EXPECT_EQ(written, pushed);
  for (const std::uint32_t at : {kIdt + 16 * 14 + 12, kGdt + 8, kTask + 0x24, kTask + 0x28})
    EXPECT_NE(std::find(read.begin(), read.end(), at), read.end()) << std::hex << at;
  EXPECT_EQ(quad_at(frame), 1u);
}

TEST_F(LongModeRecorder, FindsAnOperandFromTheNextInstructionOn) {
  begin({0x0f, 0xae, 0x05, 0xf9, 0xff, 0x00, 0x00});  // FXSAVE [RIP + fff9h]
  recorder_->start(insn_);
  (void)seen();
  Insn next = insn_;
  next.linear = registers_.state_.ip = kHigh + kCode + 7;
  next.physical = kCode + 7;
  recorder_->start(next);
  std::vector<std::uint32_t> written;
  for (const Seen& s : seen())
    if (s.type == 3) written.push_back(s.address);
  ASSERT_EQ(written.size(), 416u / 4);
  EXPECT_EQ(written.front(), kCode + 0x10000);
}

TEST_F(LongModeRecorder, ReadsFiveLevelsNot) {
  registers_.state_.cr4 |= 1 << 12;
  begin({0x90});
  EXPECT_FALSE(recorder_->active());
}

}  // namespace
}  // namespace citcat::monitor
