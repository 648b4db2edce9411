// The recorder at far transfers, task switches, x87 environments and the A20 gate: what is shown
// where a processor does otherwise than the emulator.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/monitor/recorder_fixture.h"

namespace citcat::monitor {
namespace {

/// Flat code at 0x5000, a GDT at 0x6000, the task segments 18h at 0x3000 and 20h at 0x3200.
class TransferTest : public RecorderFixture {
 protected:
  static constexpr std::uint32_t kGdt = 0x6000, kIdt = 0x7000, kOldTask = 0x3000, kNewTask = 0x3200;

  void SetUp() override {
    RecorderFixture::SetUp();
    descriptor(0x08, 0xffff, 0x00cf9a00);
    descriptor(0x10, 0xffff, 0x00cf9200);
    descriptor(0x18, kOldTask << 16 | 0x67, 0x8b00);
    descriptor(0x20, kNewTask << 16 | 0x67, 0x8900);
    LoggedState& now = registers_.state_;
    now.gdt_base = kGdt;
    now.gdt_limit = 0x2f;
    now.ip = 0x5000;
    for (LoggedSegment& s : now.segment) s.selector = 0;
    now.segment[1] = {8, 0, ~0u, 0x00cf9a00};
    now.tr = {0x18, kOldTask, 0x67, 0x8b00};
  }

  void put(std::uint32_t at, std::uint32_t value) { std::memcpy(ram_ + at, &value, 4); }
  void descriptor(std::uint32_t selector, std::uint32_t low, std::uint32_t high) {
    put(kGdt + selector, low);
    put(kGdt + selector + 4, high);
  }
  void start(Recorder& recorder, const Insn& next) {
    registers_.state_.ip = next.linear;
    recorder.start(next);
  }
  void load(Recorder& recorder, const Insn& of, std::uint32_t at, std::size_t size) {
    recorder.access(of, false, at, at, false, {ram_ + at, size});
  }
  void store(Recorder& recorder, const Insn& of, std::uint32_t at, std::uint32_t value) {
    put(at, value);
    recorder.access(of, true, at, at, false, {ram_ + at, 4});
  }

  /// An event as the emulator logs it, with this EFLAGS before it.
  void log_event(const std::string& what, const std::string& flags) {
    const std::string text = "     0: " + what +
                             " SP=0010:00004800 CR2=00003200\n"
                             "EAX=00000000 EBX=00000000 ECX=00000000 EDX=00000000\n"
                             "ESI=00000000 EDI=00000000 EBP=00000000 ESP=00004800\n"
                             "EIP=00005000 EFL=" +
                             flags +
                             " [-------] CPL=0 II=0 A20=1 SMM=0 HLT=0\n"
                             "SS =0010 00000000 ffffffff 00cf9300 DPL=0 DS   [-WA]\n"
                             "TR =0018 00003000 00000067 00008b00 DPL=0 TSS32-busy\n"
                             "GDT=     00006000 0000002f\n"
                             "IDT=     00007000 000007ff\n"
                             "CR0=00000001 CR2=00003200 CR3=00000000 CR4=00000000\n"
                             "EFER=0000000000000000\n";
    ASSERT_EQ(write(log_file_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// What INT 80h pushes as EFLAGS where the emulator has RF set.
  std::uint32_t pushed_by_int(bool first_in_block) {
    Recorder recorder(memory_, *sink_, log_, registers_, CacheModel::none);
    put(0x7000 + 8 * 0x80, 0x00085100);
    put(0x7000 + 8 * 0x80 + 4, 0x00008e00);
    const Insn before = insn(0x4fff, {0x90}), handler = insn(0x5100, {0x90});
    Insn call = insn(0x5000, {0xcd, 0x80});
    call.first_in_block = first_in_block;
    recorder.begin(first_in_block ? call : before, 0);
    if (!first_in_block) start(recorder, before);
    start(recorder, call);
    put(0x47fc, 0x00010202);
    log_event("v=80 e=0000 i=1 cpl=0 IP=0008:00005000 pc=00005000", "00010202");
    start(recorder, handler);
    std::uint32_t flags = 0;
    std::memcpy(&flags, ram_ + 0x47fc, sizeof flags);
    return flags;
  }

  struct Write {
    std::uint32_t address;
    std::vector<std::uint8_t> data;
    bool operator==(const Write&) const = default;
  };
  struct Shown {
    std::vector<Write> writes;
    std::vector<Write> reads;
  };
  /// The data accesses since it was last asked for, but for the state block.
  Shown shown() {
    Shown out;
    for (const Seen& s : seen()) {
      if (s.address >= kRam) continue;
      const Write access{s.address, {s.data.begin(), s.data.begin() + s.size}};
      if (s.type == static_cast<int>(RecordType::data_write)) out.writes.push_back(access);
      if (s.type == static_cast<int>(RecordType::data_read)) out.reads.push_back(access);
    }
    return out;
  }
};

TEST_F(TransferTest, AFarTransferMarksTheCodeSegmentAsAccessed) {
  Recorder recorder(memory_, *sink_, log_, registers_, CacheModel::none);
  const Insn jump = insn(0x5000, {0xea, 0x00, 0x51, 0, 0, 0x08, 0}), next = insn(0x5100, {0x90}),
             last = insn(0x5101, {0x90});
  recorder.begin(jump, 0);
  start(recorder, jump);
  load(recorder, jump, kGdt + 8, 4);
  load(recorder, jump, kGdt + 12, 4);
  (void)shown();
  start(recorder, next);
  EXPECT_EQ(shown().writes, (std::vector<Write>{{kGdt + 13, {0x9b}}}));
  EXPECT_EQ(ram_[kGdt + 13], 0x9b);
  start(recorder, last);
  EXPECT_TRUE(shown().writes.empty());
}

TEST_F(TransferTest, WhatIsMarkedIsNotTakenForADevices) {
  Recorder recorder(memory_, *sink_, log_, registers_, CacheModel::none);
  const Insn jump = insn(0x5000, {0xea, 0x00, 0x51, 0, 0, 0x08, 0}), next = insn(0x5100, {0x90});
  recorder.begin(jump, 0);
  start(recorder, jump);
  start(recorder, next);
  load(recorder, next, kGdt + 12, 4);
  const auto reads = shown().reads;
  ASSERT_FALSE(reads.empty());
  EXPECT_EQ(reads.back(), (Write{kGdt + 12, {0x00, 0x9b, 0xcf, 0x00}}));
}

TEST_F(TransferTest, IretToAnotherTaskSavesFlagsOnceWithoutNtAndRf) {
  Recorder recorder(memory_, *sink_, log_, registers_, CacheModel::none);
  const Insn iret = insn(0x5000, {0xcf}), next = insn(0x5100, {0x90});
  recorder.begin(iret, 0);
  start(recorder, iret);
  load(recorder, iret, kOldTask, 2);
  load(recorder, iret, kGdt + 0x20, 4);
  load(recorder, iret, kGdt + 0x24, 4);
  (void)shown();
  store(recorder, iret, kOldTask + 0x24, 0x00014202);
  load(recorder, iret, kNewTask + 0x64, 4);
  store(recorder, iret, kOldTask + 0x24, 0x00010202);
  const Shown accesses = shown();
  EXPECT_EQ(accesses.writes, (std::vector<Write>{{kOldTask + 0x24, {0x02, 0x02, 0, 0}}}));
  ASSERT_EQ(accesses.reads.size(), 1u);
  EXPECT_EQ(accesses.reads[0].data.size(), 2u) << "of the T bit's word";
  EXPECT_EQ(ram_[kOldTask + 0x26], 0);
  registers_.state_.tr.selector = 0x20;
  for (unsigned n : {0u, 2u, 3u}) registers_.state_.segment[n].selector = 0x10;
  start(recorder, next);
  EXPECT_EQ(shown().writes, (std::vector<Write>{{kGdt + 0x15, {0x93}}, {kGdt + 0x0d, {0x9b}}}));
}

TEST_F(TransferTest, ATaskSwitchThatFaultsBeginsNothing) {
  Recorder recorder(memory_, *sink_, log_, registers_, CacheModel::none);
  const Insn jump = insn(0x5000, {0xea, 0, 0, 0, 0, 0x20, 0}), push = insn(0x5100, {0x1e}),
             last = insn(0x5101, {0x90});
  recorder.begin(jump, 0);
  start(recorder, jump);
  load(recorder, jump, kGdt + 0x20, 4);
  load(recorder, jump, kGdt + 0x24, 4);
  put(0x7000 + 8 * 14, 0x00080000);
  put(0x7000 + 8 * 14 + 4, 0x00008e00);
  log_event("v=0e e=0000 i=0 cpl=0 IP=0008:00005000 pc=00005000", "00000002");
  start(recorder, push);
  (void)shown();
  store(recorder, push, 0x4700, 0x10);
  EXPECT_EQ(shown().writes, (std::vector<Write>{{0x4700, {0x10, 0}}}));
  start(recorder, last);
  EXPECT_TRUE(recorder.active());
}

TEST_F(TransferTest, IntPushesRfOnlyRightAfterTheReturnThatLoadedIt) {
  EXPECT_EQ(pushed_by_int(true), 0x00010202u);
  EXPECT_EQ(pushed_by_int(false), 0x00000202u);
}

TEST_F(TransferTest, AnNmiFindsAJumpToItselfEndedAndPushesRfAsItIs) {
  Recorder recorder(memory_, *sink_, log_, registers_, CacheModel::none);
  put(kIdt + 8 * 2, 0x00085100);
  put(kIdt + 8 * 2 + 4, 0x00008e00);
  const Insn jump = insn(0x5000, {0xeb, 0xfe}), handler = insn(0x5100, {0x90});
  recorder.begin(jump, 0);
  start(recorder, jump);
  (void)seen();
  put(0x47fc, 0x00010202);  // as the emulator pushes EFLAGS
  log_event("v=02 e=0000 i=0 cpl=0 IP=0008:00005000 pc=00005000", "00000202");
  start(recorder, handler);
  const auto records = seen();
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records[0].type, static_cast<int>(RecordType::nmi));
  EXPECT_EQ(records[0].instructions, 1u);
  std::uint32_t flags = 0;
  std::memcpy(&flags, ram_ + 0x47fc, sizeof flags);
  EXPECT_EQ(flags, 0x00000202u);
}

TEST_F(TransferTest, IntNThatItsTargetRefusesHasReadGateAndDescriptor) {
  Recorder recorder(memory_, *sink_, log_, registers_, CacheModel::none);
  put(kIdt + 8 * 0x80, 0x00105100);  // a data segment
  put(kIdt + 8 * 0x80 + 4, 0x00008e00);
  put(kIdt + 8 * 13, 0x00085100);
  put(kIdt + 8 * 13 + 4, 0x00008e00);
  const Insn call = insn(0x5000, {0xcd, 0x80}), handler = insn(0x5100, {0x90});
  recorder.begin(call, 0);
  start(recorder, call);
  (void)shown();
  log_event("v=80 e=0000 i=1 cpl=0 IP=0008:00005000 pc=00005000", "00000202");
  log_event("v=0d e=0010 i=0 cpl=0 IP=0008:00005000 pc=00005000", "00000202");
  start(recorder, handler);
  std::vector<std::uint32_t> reads;
  for (const Write& read : shown().reads) reads.push_back(read.address);
  EXPECT_EQ(reads,
            (std::vector<std::uint32_t>{kIdt + 0x400, kIdt + 0x404, kGdt + 0x10, kGdt + 0x14,
                                        kIdt + 8 * 13, kIdt + 8 * 13 + 4, kGdt + 8, kGdt + 12}));
  EXPECT_TRUE(recorder.active());
}

TEST_F(TransferTest, AnExceptionThatIsRefusedPushesAnErrorCodeThatSaysSo) {
  Recorder recorder(memory_, *sink_, log_, registers_, CacheModel::none);
  put(kIdt + 8 * 6, 0x00105100);
  put(kIdt + 8 * 6 + 4, 0x00008e00);
  put(kIdt + 8 * 13, 0x00085100);
  put(kIdt + 8 * 13 + 4, 0x00008e00);
  const Insn undefined = insn(0x5000, {0x0f, 0x0b}), handler = insn(0x5100, {0x90});
  recorder.begin(undefined, 0);
  start(recorder, undefined);
  put(0x47f0, 0x10);  // as the emulator pushes it
  log_event("v=06 e=0000 i=0 cpl=0 IP=0008:00005000 pc=00005000", "00000202");
  log_event("v=0d e=0010 i=0 cpl=0 IP=0008:00005000 pc=00005000", "00000202");
  start(recorder, handler);
  EXPECT_EQ(ram_[0x47f0], 0x11) << "bit 0: the program did not ask for it";
  EXPECT_EQ(recorder.instructions(), 0u);
}

TEST_F(TransferTest, ADeliveryThatAProcessorRefusesEndsTheRecording) {
  for (const std::uint32_t gate : {0x00105100u, 0x00085100u}) {
    Recorder recorder(memory_, *sink_, log_, registers_, CacheModel::none);
    put(kIdt + 8 * 0x80, gate);
    put(kIdt + 8 * 0x80 + 4, 0x12348600);  // of the 286, with something in its last word
    const Insn call = insn(0x5000, {0xcd, 0x80}), handler = insn(0x5100, {0x90});
    recorder.begin(call, 0);
    start(recorder, call);
    log_event("v=80 e=0000 i=1 cpl=0 IP=0008:00005000 pc=00005000", "00000202");
    start(recorder, handler);
    EXPECT_FALSE(recorder.active()) << std::hex << gate;
  }
}

TEST_F(TransferTest, IcebpEndsByItsOwnTrap) {
  Recorder recorder(memory_, *sink_, log_, registers_, CacheModel::none);
  put(kIdt + 8, 0x00085100);
  put(kIdt + 8 + 4, 0x00008e00);
  const Insn trap = insn(0x5000, {0xf1}), handler = insn(0x5100, {0x90});
  recorder.begin(trap, 0);
  start(recorder, trap);
  (void)seen();
  log_event("v=01 e=0000 i=0 cpl=0 IP=0008:00005001 pc=00005001", "00000202");
  start(recorder, handler);
  for (const Seen& s : seen()) {
    if (s.type != static_cast<int>(RecordType::data_write)) continue;
    EXPECT_EQ(s.instructions, 0u) << "as INT3 has it";
  }
  EXPECT_EQ(recorder.instructions(), 1u);
}

TEST_F(TransferTest, TwoTrapsOfOneInstructionEndTheRecording) {
  Recorder recorder(memory_, *sink_, log_, registers_, CacheModel::none);
  put(kIdt + 8, 0x00085100);
  put(kIdt + 8 + 4, 0x00008e00);
  const Insn stepped = insn(0x5000, {0x90}), handler = insn(0x5100, {0x90});
  recorder.begin(stepped, 0);
  start(recorder, stepped);
  log_event("v=01 e=0000 i=0 cpl=0 IP=0008:00005001 pc=00005001", "00000302");
  log_event("v=01 e=0000 i=0 cpl=0 IP=0008:00005100 pc=00005100", "00000202");
  start(recorder, handler);
  EXPECT_FALSE(recorder.active());
}

TEST_F(TransferTest, ABreakpointRightBehindALoadOfTheStackSegmentEndsTheRecording) {
  const std::vector<std::vector<std::uint8_t>> loads = {
      {0x8e, 0xd0}, {0x17}, {0x8e, 0xd8}, {0x0f, 0x8e, 0x10, 0, 0, 0}};  // the last two are others
  put(kIdt + 8, 0x00085100);
  put(kIdt + 8 + 4, 0x00008e00);
  for (std::size_t n = 0; n < loads.size(); ++n) {
    Recorder recorder(memory_, *sink_, log_, registers_, CacheModel::none);
    const Insn load = insn(0x5000, loads[n]), handler = insn(0x5100, {0x90});
    const unsigned behind = 0x5000 + load.size;
    recorder.begin(load, 0);
    start(recorder, load);
    char event[96];
    std::snprintf(event, sizeof event, "v=01 e=0000 i=0 cpl=0 IP=0008:%08x pc=%08x", behind,
                  behind);
    log_event(event, "00000202");
    start(recorder, handler);
    EXPECT_EQ(recorder.active(), n >= 2) << n;
  }
}

TEST_F(TransferTest, WhatTheEmulatorExecutesAndProcessorsRefuseEndsTheRecording) {
  const std::vector<std::vector<std::uint8_t>> misdone = {
      {0x8e, 0xc8}, {0x8e, 0x08},       {0x0f, 0xe7, 0xc1},       {0x66, 0x0f, 0x16, 0xc1},
      {0xd4, 0x80}, {0x66, 0x0f, 0x77}, {0xc8, 0x00, 0x80, 0x00}, {0x66, 0x0f, 0xc8}};
  for (const auto& bytes : misdone) {
    Recorder recorder(memory_, *sink_, log_, registers_, CacheModel::none);
    const Insn first = insn(0x5000, bytes), next = insn(0x5000 + first.size, {0x90});
    recorder.begin(first, 0);
    start(recorder, first);
    EXPECT_TRUE(recorder.active()) << "it may still be refused";
    start(recorder, next);
    EXPECT_FALSE(recorder.active());
  }
}

TEST_F(TransferTest, WhatTheEmulatorRefusesAndProcessorsExecuteEndsTheRecording) {
  put(kIdt + 8 * 6, 0x00085100);
  put(kIdt + 8 * 6 + 4, 0x00008e00);
  const Insn test = insn(0x5000, {0xf7, 0xc8, 1, 0, 0, 0}), handler = insn(0x5100, {0x90});
  Recorder recorder(memory_, *sink_, log_, registers_, CacheModel::none);
  recorder.begin(test, 0);
  start(recorder, test);
  log_event("v=06 e=0000 i=0 cpl=0 IP=0008:00005000 pc=00005000", "00000202");
  start(recorder, handler);
  EXPECT_FALSE(recorder.active());
}

TEST_F(TransferTest, ACallThroughAGateThatIsTakenOtherwiseEndsTheRecording) {
  struct Case {
    std::uint32_t gate, code;
    std::uint16_t level;
    bool jump, goes_on;
  };
  constexpr std::uint32_t kPlain = 0x00cf9b00, kConforming = 0x00cf9f00;
  const Case cases[] = {
      {0x12348400, kPlain, 0, false, false},  {0x8400, kPlain, 0, false, true},
      {0x12348400, kPlain, 0, true, true},    {0x8c00, kPlain, 0, false, true},
      {0xec00, kConforming, 3, false, false}, {0xec00, kConforming, 3, true, true},
      {0x8c00, kConforming, 0, false, true}};
  for (const Case& c : cases) {
    Recorder recorder(memory_, *sink_, log_, registers_, CacheModel::none);
    descriptor(0x20, 0x00085100, c.gate);
    descriptor(0x08, 0xffff, c.code);
    registers_.state_.segment[1].selector = 8u | c.level;
    const std::uint8_t opcode = c.jump ? 0xea : 0x9a;
    const Insn transfer = insn(0x5000, {opcode, 0, 0, 0, 0, 0x20, 0}), next = insn(0x5100, {0x90});
    recorder.begin(transfer, 0);
    start(recorder, transfer);
    for (const std::uint32_t at : {0x20u, 0x24u, 0x08u, 0x0cu})
      load(recorder, transfer, kGdt + at, 4);
    start(recorder, next);
    EXPECT_EQ(recorder.active(), c.goes_on) << std::hex << c.gate << ' ' << c.code << c.jump;
  }
}

TEST_F(TransferTest, AFarTransferBehindTheEndOfItsSegmentEndsTheRecording) {
  for (const std::uint32_t ip : {0x10u, 0x11u}) {
    Recorder recorder(memory_, *sink_, log_, registers_, CacheModel::none);
    descriptor(0x08, 0x0010, 0x00409b00);  // 17 bytes
    const Insn transfer = insn(0x5000, {0xea, 0, 0, 0, 0, 8, 0}), next = insn(ip, {0x90});
    registers_.state_.ip = 0x5000;
    recorder.begin(transfer, 0);
    start(recorder, transfer);
    for (const std::uint32_t at : {0x08u, 0x0cu}) load(recorder, transfer, kGdt + at, 4);
    start(recorder, next);
    EXPECT_EQ(recorder.active(), ip == 0x10);
  }
}

TEST_F(TransferTest, LockNegReadsItsOperandOnce) {
  Recorder recorder(memory_, *sink_, log_, registers_, CacheModel::none);
  const Insn neg = insn(0x5000, {0xf0, 0xf7, 0x1d, 0, 0x40, 0, 0});  // lock neg dword [4000h]
  const Insn plain = insn(0x5007, {0xf7, 0x1d, 0, 0x40, 0, 0});
  put(0x4000, 1);
  registers_.state_.segment[3].selector = 0x10;
  recorder.begin(neg, 0);
  start(recorder, neg);
  (void)shown();
  load(recorder, neg, 0x4000, 4);  // as QEMU does: first alone, then to compare and exchange
  load(recorder, neg, 0x4000, 4);
  store(recorder, neg, 0x4000, ~0u);
  const Shown once = shown();
  EXPECT_EQ(once.reads, (std::vector<Write>{{0x4000, {1, 0, 0, 0}}}));
  EXPECT_EQ(once.writes, (std::vector<Write>{{0x4000, {0xff, 0xff, 0xff, 0xff}}}));
  start(recorder, plain);
  (void)shown();
  load(recorder, plain, 0x4000, 4);
  EXPECT_EQ(shown().reads.size(), 1U) << "without LOCK it is read once";
}

TEST_F(TransferTest, FnsaveStoresAProcessorsPointersAndOnes) {
  Recorder recorder(memory_, *sink_, log_, registers_, CacheModel::none);
  registers_.state_.segment[3] = {0x10, 0, ~0u, 0x00cf9300};
  const Insn load_real = insn(0x5000, {0xdd, 0x00}), save = insn(0x5002, {0xdd, 0x30}),
             last = insn(0x5004, {0x90});
  recorder.begin(load_real, 0);
  start(recorder, load_real);
  load(recorder, load_real, 0x8000, 8);
  start(recorder, save);
  (void)shown();
  store(recorder, save, 0x9000, 0x37f);
  for (std::uint32_t n = 1; n < 7; ++n) store(recorder, save, 0x9000 + 4 * n, 0);
  EXPECT_EQ(shown().writes, (std::vector<Write>{{0x9000, {0x7f, 0x03, 0xff, 0xff}},
                                                {0x9004, {0, 0, 0xff, 0xff}},
                                                {0x9008, {0, 0, 0xff, 0xff}},
                                                {0x900c, {0, 0x50, 0, 0}},
                                                {0x9010, {0x08, 0, 0x00, 0x05}},
                                                {0x9014, {0, 0x80, 0, 0}},
                                                {0x9018, {0x10, 0, 0xff, 0xff}}}));
  EXPECT_EQ(ram_[0x900d], 0x50);
  start(recorder, last);
}

TEST_F(TransferTest, FrstorReadsTheWholeEnvironment) {
  Recorder recorder(memory_, *sink_, log_, registers_, CacheModel::none);
  const Insn restore = insn(0x5000, {0xdd, 0x20}), last = insn(0x5002, {0x90});
  recorder.begin(restore, 0);
  start(recorder, restore);
  (void)shown();
  for (const std::uint32_t at : {0x9000u, 0x9004u, 0x9008u}) load(recorder, restore, at, 2);
  load(recorder, restore, 0x901c, 8);
  const auto reads = shown().reads;
  ASSERT_EQ(reads.size(), 9u) << "seven fields, and eight bytes as two dwords";
  for (unsigned n = 0; n < 9; ++n) EXPECT_EQ(reads[n].address, 0x9000 + 4 * n);
  start(recorder, last);
}

TEST_F(TransferTest, TheA20GateIsFollowedThroughItsPort) {
  Recorder recorder(memory_, *sink_, log_, registers_, CacheModel::none);
  const Insn close_gate = insn(0x5000, {0xe6, 0x92}), use = insn(0x5002, {0x90});
  registers_.state_.cr0 = 0x80000001;
  registers_.state_.cr3 = 0x20000;
  put(0x20000, 0x121067);  // a table at 0x21000 when bit 20 is masked
  put(0x21014, 0x105067);  // 0x5000 as well
  put(0x121014, 0x105067);
  put(0x121020, 0x108067);
  put(0x21020, 0x108067);
  recorder.begin(close_gate, 0);
  start(recorder, close_gate);
  registers_.state_.a20 = false;
  start(recorder, use);
  (void)shown();
  recorder.access(use, false, 0x8010, 0x8010, false, {ram_ + 0x8010, 4});
  const auto reads = shown().reads;
  ASSERT_EQ(reads.size(), 3u) << "one walk";
  EXPECT_EQ(reads[1].address, 0x21020u);
  EXPECT_EQ(reads[2].address, 0x8010u);
}

}  // namespace
}  // namespace citcat::monitor
