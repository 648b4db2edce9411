// What a processor refuses, and in which order, where the engine does otherwise: found by comparing
// with the processor of the host, step by step (docs/silicon.md), and held here without it.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "replay/replayer.h"
#include "unit/replay/both_paths.h"
#include "unit/replay/paged_guest.h"

namespace citcat {
namespace {

using test::PagedGuest;

constexpr std::uint32_t kGdt = 0x1000, kIdt = 0x2000, kTss = 0x3000, kHandlers = 0x4000,
                        kCode = 0x5000, kAbsent = 0x20000, kData = 0x21000, kStack = 0x22800,
                        kKernelStack = 0x24f00;
constexpr std::uint32_t kPresentUserUsed = 0x67;
constexpr int kCode32 = 0x1b, kData32 = 0x23, kShortCode = 0x33, kFaultsGate = 0xee00,
              kSystemGate = 0x8e00;

struct Deliveries final : Sink {
  Detail detail() const override { return Detail::nothing; }
  void block(const ExecutedBlock&, Position) override {}
  void delivered(const DeliveredEvent& e, Position) override { list.push_back(e); }
  std::vector<DeliveredEvent> list;
};

/// Ring 3 with paging, everything flat; each vector's handler is a NOP.
class Ring3 : public testing::TestWithParam<ExecutionPath> {
 protected:
  Ring3() {
    CpuState& s = guest.recording.initial;
    for (std::uint32_t d = 0; d < 1024; ++d) {
      guest.put_word(PagedGuest::kDirectory + 4 * d, PagedGuest::kTable | kPresentUserUsed);
    }
    for (std::uint32_t p = 0; p < PagedGuest::kFrames; ++p) {
      guest.put_word(PagedGuest::kTable + 4 * p, p * kPageSize | kPresentUserUsed);
    }
    guest.put_word(PagedGuest::kTable + 4 * (kAbsent / kPageSize), 0);
    descriptor(8, 0xffff, 0xcf9b00);
    descriptor(0x10, 0xffff, 0xcf9300);
    descriptor(0x18, 0xffff, 0xcffb00);
    descriptor(0x20, 0xffff, 0xcff300);
    descriptor(0x30, 0x5fff, 0x40fb00);  // code that ends at 5fff
    for (std::uint32_t v = 0; v < 32; ++v) gate(v, v == 3 ? kFaultsGate : kSystemGate);
    guest.put_word(kTss + 4, kKernelStack);
    guest.put_word(kTss + 8, 0x10);
    for (std::uint32_t a = kHandlers; a < kHandlers + 0x200; ++a) guest.put(a, {0x90});
    s.segment.fill({kData32, 0, 0xffffffff, 0xc0f3, false});
    s.segment[kCs] = {kCode32, 0, 0xffffffff, 0xc0fb, false};
    s.gdtr = {kGdt, 0x3f};
    s.idtr = {kIdt, 0xff};
    s.tr = {0x28, kTss, 0x67, 0x8b, false};
    s.eip = kCode;
    s.gpr = {0, 0, 0, 0, kStack, 0x12345678, kData, kData};
    s.eflags = 0x202;
  }

  CpuState& state() { return guest.recording.initial; }
  void descriptor(std::uint32_t selector, std::uint32_t low, std::uint32_t high) {
    guest.put_word(kGdt + selector, low);
    guest.put_word(kGdt + selector + 4, high);
  }
  void gate(std::uint32_t vector, std::uint32_t type) {
    guest.put_word(kIdt + 8 * vector, 0x80000 | (kHandlers + 16 * vector));
    guest.put_word(kIdt + 8 * vector + 4, type);
  }
  void short_code() { state().segment[kCs] = {kShortCode, 0, 0x5fff, 0x40fb, false}; }
  void code(std::initializer_list<int> bytes) { guest.put(kCode, bytes); }

  /// One instruction, and the handler's first where that is refused.
  void run(std::uint64_t instructions = 1) {
    guest.recording.instructions = instructions;
    ReplayOptions options;
    options.path = GetParam();
    Replayer replayer(guest.recording, &deliveries, options);
    const ReplayReport report = replayer.run();
    EXPECT_EQ(report.divergence ? report.divergence->reason : "", "");
    cpu = replayer.machine().save();
    for (std::uint32_t page = 0; page < PagedGuest::kFrames; ++page) {
      const std::uint8_t* const host = replayer.machine().memory().host(PhysAddr{page * kPageSize});
      memory.insert(memory.end(), host, host + kPageSize);
    }
  }
  std::uint32_t word(std::uint32_t at) const {
    std::uint32_t value = 0;
    std::memcpy(&value, &memory.at(at), 4);
    return value;
  }
  /// The instruction was refused where it is, with the stack as it was.
  void expect_refused(unsigned vector, std::uint32_t error) {
    expect_delivered(vector, state().eip);
    if (HasFatalFailure()) return;
    EXPECT_EQ(deliveries.list.back().error_code, error);
    EXPECT_EQ(cpu.gpr[kEsp], kKernelStack - 24);
    EXPECT_EQ(word(kKernelStack - 24), error);
  }
  /// The same, where there is no error code, of the instruction at `eip`.
  void expect_undefined(std::uint32_t eip) {
    expect_delivered(6, eip);
    if (HasFatalFailure()) return;
    EXPECT_EQ(cpu.gpr[kEsp], kKernelStack - 20);
  }
  void expect_delivered(unsigned vector, std::uint32_t eip) {
    ASSERT_FALSE(deliveries.list.empty());
    const DeliveredEvent& last = deliveries.list.back();
    EXPECT_EQ(unsigned{last.vector}, vector);
    EXPECT_EQ(last.eip, eip);
    EXPECT_EQ(cpu.eip, kHandlers + 16 * vector + 1);
    EXPECT_EQ(word(kKernelStack - 20), eip);
    EXPECT_EQ(word(kKernelStack - 8), state().gpr[kEsp]);
  }

  PagedGuest guest;
  Deliveries deliveries;
  CpuState cpu;
  std::vector<std::uint8_t> memory;
};

// SDM vol. 3, table 6-4: INT n is benign, so a fault on its way makes no double fault.
TEST_P(Ring3, InterruptInstructionThatItsGateRefusesIsAProtectionFault) {
  code({0xcd, 12});
  run();
  expect_refused(13, 12 * 8 + 2);
}

// SDM vol. 2, CALL: the level changes when all is done. Seen in an emulator's recordings.
TEST_P(Ring3, ParametersOfACallGateAreReadWithTheRightsOfTheCaller) {
  descriptor(0x38, 0x80000 | kHandlers, 0xec02);
  guest.put_word(PagedGuest::kTable + 4 * (kStack / kPageSize),
                 (kStack & ~(kPageSize - 1)) | (kPresentUserUsed & ~4u));
  code({0x9a, 0, 0, 0, 0, 0x3b, 0});
  run();
  expect_refused(14, 5);
}

TEST_P(Ring3, ReturnReleasesAsMuchAsItsOperandSays) {
  state().gpr[kEsp] = kData;
  guest.put_word(kData, 0x6000);
  code({0xc2, 0x02, 0x80});  // ret 8002h
  run();
  EXPECT_EQ(cpu.eip, 0x6000u);
  EXPECT_EQ(cpu.gpr[kEsp], kData + 4 + 0x8002);
}

TEST_P(Ring3, NearTransferBeyondTheSegmentIsRefusedBeforeItIsMade) {
  const std::initializer_list<int> kTransfers[] = {
      {0xe9, 0, 0x20, 0, 0},        // jmp
      {0xe8, 0, 0x20, 0, 0},        // call
      {0x0f, 0x85, 0, 0x20, 0, 0},  // jne
      {0xff, 0xe0},                 // jmp eax
      {0xff, 0xd0},                 // call eax
      {0xff, 0x16},                 // call [esi]
      {0xc3},                       // ret
      {0xc2, 4, 0},                 // ret 4
  };
  for (const auto& transfer : kTransfers) {
    short_code();
    state().gpr[kEax] = 0x7000;
    guest.put_word(kData, 0x7000);
    guest.put_word(kStack, 0x7000);
    guest.put_word(kStack - 4, 0x55555555);
    code(transfer);
    deliveries.list.clear();
    memory.clear();
    run();
    expect_refused(13, 0);
    EXPECT_EQ(word(kStack - 4), 0x55555555u);
  }
}

TEST_P(Ring3, ConditionalJumpThatIsNotTakenIsNotRefused) {
  short_code();
  code({0x0f, 0x84, 0, 0x20, 0, 0});  // je
  run();
  EXPECT_TRUE(deliveries.list.empty());
  EXPECT_EQ(cpu.eip, kCode + 6);
}

TEST_P(Ring3, LoopBeyondTheSegmentLeavesItsCounter) {
  state().gpr[kEcx] = 2;
  state().segment[kCs] = {kShortCode, 0, 0x5010, 0x40fb, false};
  code({0xe2, 0x40});
  run();
  expect_refused(13, 0);
  EXPECT_EQ(cpu.gpr[kEcx], 2u);
}

TEST_P(Ring3, FarTransferBeyondTheSegmentNamesNoSelectorAndStoresNothing) {
  for (const int opcode : {0x9a, 0xea}) {
    guest.put_word(kStack - 4, 0x55555555);
    guest.put_word(kStack - 8, 0x55555555);
    code({opcode, 0, 0x70, 0, 0, kShortCode, 0});
    deliveries.list.clear();
    memory.clear();
    run();
    expect_refused(13, 0);
    EXPECT_EQ(word(kStack - 4), 0x55555555u);
    EXPECT_EQ(word(kStack - 8), 0x55555555u);
  }
}

TEST_P(Ring3, FarCallLooksAtItsSelectorBeforeItsStack) {
  state().gpr[kEsp] = kAbsent + 0x800;
  code({0x9a, 0, 0x50, 0, 0, 0x73, 0});  // beyond the table
  run();
  expect_refused(13, 0x70);
}

TEST_P(Ring3, FarCallWithinTheSegmentReturnsBehindItself) {
  code({0x9a, 0x10, 0x50, 0, 0, kShortCode, 0});
  run();
  EXPECT_TRUE(deliveries.list.empty());
  EXPECT_EQ(cpu.eip, 0x5010u);
  EXPECT_EQ(cpu.segment[kCs], (Segment{kShortCode, 0, 0x5fff, 0x40fb, false}));
  EXPECT_EQ(word(kStack - 4), std::uint32_t{kCode32});
  EXPECT_EQ(word(kStack - 8), kCode + 7);
}

TEST_P(Ring3, FarCallOnAStackThatGrowsDownStopsAtItsLimit) {
  state().segment[kSs] = {kData32, 0, 0x22900, 0x40f7, false};
  code({0x9a, 0x10, 0x50, 0, 0, kShortCode, 0});
  run();
  expect_refused(12, 0);
}

// SDM vol. 2, IRET: VM is looked at where CPL is 0.
TEST_P(Ring3, InterruptReturnDoesNotEnterVirtual8086Mode) {
  guest.put_word(kStack, 0x6000);
  guest.put_word(kStack + 4, kCode32);
  guest.put_word(kStack + 8, 0x23003);
  code({0xcf});
  run();
  EXPECT_TRUE(deliveries.list.empty());
  EXPECT_EQ(cpu.eip, 0x6000u);
  EXPECT_EQ(cpu.segment[kCs].selector, kCode32);
  EXPECT_EQ(cpu.eflags, 0x203u);
  EXPECT_EQ(cpu.gpr[kEsp], kStack + 12);
}

// SDM vol. 2, ENTER: #PF if a write using the final value of the stack pointer would cause one.
TEST_P(Ring3, EnterRefusesAFrameThatHasNoRoom) {
  code({0xc8, 0x00, 0x20, 0});  // enter 2000h,0
  run();
  expect_refused(14, 6);
  EXPECT_EQ(cpu.cr2, kStack - 4 - 0x2000);
  EXPECT_EQ(cpu.gpr[kEbp], 0x12345678u);
}

TEST_P(Ring3, EnterOfSixteenBitsChangesHalfOfTheFramePointer) {
  code({0x66, 0xc8, 0x10, 0, 0});
  run();
  EXPECT_EQ(cpu.gpr[kEbp], 0x12340000u | ((kStack - 2) & 0xffff));
  EXPECT_EQ(cpu.gpr[kEsp], kStack - 2 - 0x10);
}

TEST_P(Ring3, FloatingMoveGoesByTheFlags) {
  // ST0 = 1.0, ST1 = 0.0: fld1; fldz; fxch are done by the state.
  CpuState& s = state();
  s.cr0 &= ~0xcu;
  s.fx[4] = 0x03;  // ST0 and ST1 in use, TOP 0
  s.fx[32 + 7] = 0x80;
  s.fx[32 + 8] = 0xff;
  s.fx[32 + 9] = 0x3f;
  for (const bool below : {false, true}) {
    s.eflags = below ? 0x203 : 0x202;
    code({0xda, 0xc1});  // fcmovb st,st(1)
    run();
    EXPECT_EQ(cpu.fx[32 + 9], below ? 0 : 0x3f);
  }
}

TEST_P(Ring3, VectorOperandThatIsNotAlignedIsRefused) {
  state().cr0 &= ~0xcu;
  state().cr4 |= 0x200;
  for (const std::initializer_list<int> bytes : {std::initializer_list<int>{0x0f, 0x28, 0x46, 0x04},
                                                 {0x0f, 0x29, 0x46, 0x04},
                                                 {0x0f, 0x57, 0x46, 0x04},
                                                 {0x0f, 0x58, 0x46, 0x04},
                                                 {0x0f, 0xae, 0x46, 0x08}}) {
    code(bytes);  // movaps, movaps, xorps, addps, fxsave
    deliveries.list.clear();
    memory.clear();
    run();
    expect_refused(13, 0);
  }
  code({0x0f, 0x10, 0x46, 0x04});  // movups
  deliveries.list.clear();
  run();
  EXPECT_TRUE(deliveries.list.empty());
}

TEST_P(Ring3, LookingUpADescriptorChecksTheOperandsSegmentFirst) {
  state().segment[kDs] = {kData32, 0, 0xfff, 0x40f3, false};
  for (const int opcode : {0x02, 0x03}) {
    code({0x0f, opcode, 0x05, 0x00, 0x00, 0x02, 0x00});  // [20000], not there either
    deliveries.list.clear();
    memory.clear();
    run();
    expect_refused(13, 0);
  }
}

TEST_P(Ring3, PopOfASegmentRegisterFaultsWithTheProgramsRights) {
  state().gpr[kEsp] = kAbsent - 2;
  guest.put(kAbsent - 2, {0x23, 0});
  code({0x1f});
  run();
  expect_refused(14, 4);
}

TEST_P(Ring3, ChangingACodeSegmentIsRefusedBeforeItsPageIsLookedAt) {
  code({0x2e, 0x01, 0x05, 0x00, 0x00, 0x02, 0x00});  // add cs:[20000],eax
  run();
  expect_refused(13, 0);
}

TEST_P(Ring3, UndefinedInstructionThatTheSegmentCutsOffIsAProtectionFault) {
  state().segment[kCs] = {kShortCode, 0, kCode, 0x40fb, false};
  code({0x0f, 0x0b});
  run();
  expect_refused(13, 0);
}

TEST_P(Ring3, FetchBeyondTheSegmentIsRefusedBeforeItsPageIsLookedAt) {
  short_code();
  state().eip = kAbsent;
  run();
  expect_refused(13, 0);
}

/// At the end of 64 KiB.
TEST_P(Ring3, SixteenBitCodeDoesNotGoOnAtItsBeginning) {
  state().segment[kCs] = {kShortCode, kCode - 0xffff, 0xffff, 0xfb, false};
  state().eip = 0xffff;
  code({0x9b});  // fwait
  guest.recording.initial.cr0 &= ~0xau;
  run();
  EXPECT_TRUE(deliveries.list.empty());
  EXPECT_EQ(cpu.eip, 0x10000u);
}

/// SDM vol. 2, LOCK: #UD. The engine ends the process where it translates them.
constexpr std::initializer_list<int> kLockedBitTests[] = {
    {0xf0, 0x0f, 0xa3, 0xc1},                    // lock bt ecx,eax
    {0xf0, 0x0f, 0xab, 0xc1},                    // lock bts
    {0xf0, 0x0f, 0xb3, 0xc1},                    // lock btr
    {0xf0, 0x0f, 0xbb, 0xff},                    // lock btc edi,edi
    {0xf0, 0x0f, 0xba, 0xe0, 5},                 // lock bt eax,5
    {0xf0, 0x0f, 0xba, 0xe9, 5},                 // lock bts
    {0xf0, 0x0f, 0xba, 0xf2, 5},                 // lock btr
    {0xf0, 0x0f, 0xba, 0xff, 5},                 // lock btc
    {0x66, 0xf0, 0x0f, 0xab, 0xc1},              // of 16 bits
    {0xf0, 0x67, 0xf0, 0xf3, 0x0f, 0xbb, 0xc1},  // with more prefixes, and LOCK twice
    {0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0x0f, 0xba, 0xe9, 5},
};

class Ring3LockedBitTest : public Ring3 {
 protected:
  void expect_each_undefined() {
    for (const auto& instruction : kLockedBitTests) {
      code(instruction);
      deliveries.list.clear();
      memory.clear();
      run();
      expect_undefined(kCode);
    }
  }
};

TEST_P(Ring3LockedBitTest, OfARegisterIsUndefined) {
  for (const CpuModel model : {CpuModel::i386, CpuModel::i486, CpuModel::pentium, CpuModel::p6}) {
    state().model = model;
    expect_each_undefined();
  }
}

TEST_P(Ring3LockedBitTest, OfARegisterIsUndefinedInSixteenBitCode) {
  state().segment[kCs] = {kShortCode, 0, 0xffff, 0xfb, false};
  expect_each_undefined();
}

TEST_P(Ring3, LockedBitTestOfARegisterMayFollowInABlock) {
  for (const auto& instruction : kLockedBitTests) {
    code({0x43, 0x43});  // inc ebx
    guest.put(kCode + 2, instruction);
    deliveries.list.clear();
    memory.clear();
    run(3);
    expect_undefined(kCode + 2);
    EXPECT_EQ(cpu.gpr[kEbx], 2u);
  }
}

TEST_P(Ring3, LockedBitTestOfARegisterMayLieAcrossPages) {
  for (std::uint32_t before = 1; before < 5; ++before) {
    state().eip = kCode + kPageSize - before - 1;
    guest.put(state().eip, {0x43, 0xf0, 0x0f, 0xba, 0xe9, 5});
    deliveries.list.clear();
    memory.clear();
    run(2);
    expect_undefined(state().eip + 1);
    EXPECT_EQ(cpu.gpr[kEbx], 1u);
  }
}

TEST_P(Ring3, LockedBitTestOfARegisterIsNotChangedBeforeItIsMet) {
  code({0xa1, 0x05, 0x50, 0, 0, 0xf0, 0x0f, 0xab, 0xc1});  // mov eax,[5005]
  run(2);
  expect_undefined(kCode + 5);
  EXPECT_EQ(cpu.gpr[kEax], 0xc1ab0ff0u);
  EXPECT_EQ(word(kCode + 5), 0xc1ab0ff0u);
}

TEST_P(Ring3, LockedBitTestOfARegisterThatIsPatchedIsExecuted) {
  code({0xc6, 0x05, 0x07, 0x50, 0, 0, 0x90, 0xf0, 0x0f, 0xab, 0xc1});  // mov byte [5007],90
  state().gpr[kEax] = 4;
  run(3);
  EXPECT_TRUE(deliveries.list.empty());
  EXPECT_EQ(cpu.gpr[kEcx], 0x10u);
  EXPECT_EQ(cpu.eip, kCode + 11);
}

TEST_P(Ring3, BitTestOfARegisterThatIsPatchedIsUndefined) {
  code({0xc6, 0x05, 0x07, 0x50, 0, 0, 0xf0, 0x90, 0x0f, 0xab, 0xc1});  // mov byte [5007],f0
  run(2);
  expect_undefined(kCode + 7);
}

TEST_P(Ring3, LockedBitTestOfMemoryIsUndefinedOnlyWhereItWritesNothing) {
  for (const int opcode : {0xa3, 0xab, 0xb3, 0xbb}) {
    code({0xf0, 0x0f, opcode, 0x06});  // [esi]
    deliveries.list.clear();
    memory.clear();
    run();
    if (opcode == 0xa3) {
      expect_undefined(kCode);
    } else {
      EXPECT_TRUE(deliveries.list.empty());
      EXPECT_EQ(cpu.eip, kCode + 4);
    }
  }
}

TEST_P(Ring3, UndefinedInstructionNeedsNoBytesBeyondItsOpcode) {
  // Before a page that is not there, into which their operands would reach.
  for (const std::initializer_list<int> bytes :
       {std::initializer_list<int>{0xff, 0x7e}, {0x8f, 0x34}, {0xc6, 0x48}, {0xfe, 0x50}}) {
    for (const bool first : {true, false}) {
      state().eip = kAbsent - 2 - (first ? 0 : 1);
      guest.put(kAbsent - 3, {0x43});
      guest.put(kAbsent - 2, bytes);
      deliveries.list.clear();
      memory.clear();
      run(first ? 1 : 2);
      expect_undefined(kAbsent - 2);
    }
  }
}

TEST_P(Ring3, FarReturnBeyondTheSegmentIsRefusedBeforeItIsMade) {
  for (const std::initializer_list<int> bytes :
       {std::initializer_list<int>{0xcb}, {0xca, 4, 0}, {0xcf}}) {
    guest.put_word(kStack, 0x6000);
    guest.put_word(kStack + 4, kShortCode);
    guest.put_word(kStack + 8, 0x202);
    code(bytes);
    deliveries.list.clear();
    memory.clear();
    run();
    expect_refused(13, 0);
    EXPECT_EQ(word(kKernelStack - 16), std::uint32_t{kCode32});
  }
}

TEST_P(Ring3, FarReturnToTheEndOfTheSegmentIsMade) {
  for (const int opcode : {0xcb, 0xcf}) {
    guest.put_word(kStack, 0x5fff);
    guest.put_word(kStack + 4, kShortCode);
    guest.put_word(kStack + 8, 0x202);
    code({opcode});
    deliveries.list.clear();
    run();
    EXPECT_TRUE(deliveries.list.empty());
    EXPECT_EQ(cpu.eip, 0x5fffu);
    EXPECT_EQ(cpu.segment[kCs].selector, kShortCode);
  }
}

TEST_P(Ring3, FarReturnNamesWhatIsWrongWithItsSelectorFirst) {
  guest.put_word(kStack, 0x6000);
  guest.put_word(kStack + 4, kData32);
  code({0xcb});
  run();
  expect_refused(13, kData32 & 0xfc);
}

TEST_P(Ring3, CallThatStoresOverItselfIsMadeOnce) {
  state().gpr[kEsp] = kCode + 6;
  code({0xe8, 0xfb, 0x0f, 0, 0});  // call 6000
  guest.put(0x6000, {0x43, 0xeb, 0xfe});
  run(2);
  EXPECT_TRUE(deliveries.list.empty());
  EXPECT_EQ(cpu.eip, 0x6001u);
  EXPECT_EQ(cpu.gpr[kEbx], 1u);
  EXPECT_EQ(cpu.gpr[kEsp], kCode + 2);
  EXPECT_EQ(word(kCode + 2), kCode + 5);
}

TEST_P(Ring3, CallOfItselfIsMade) {
  for (const std::uint32_t before : {0, 1}) {
    guest.put(kCode, {0x43, 0xe8, 0xfb, 0xff, 0xff, 0xff});
    state().eip = kCode + 1 - before;
    run(3 + before);
    EXPECT_TRUE(deliveries.list.empty());
    EXPECT_EQ(cpu.eip, kCode + 1);
    EXPECT_EQ(cpu.gpr[kEsp], kStack - 12);
  }
}

TEST_P(Ring3, IndirectCallOfItselfIsMade) {
  state().gpr[kEax] = kCode;
  code({0xff, 0xd0});
  run(3);
  EXPECT_TRUE(deliveries.list.empty());
  EXPECT_EQ(cpu.eip, kCode);
  EXPECT_EQ(cpu.gpr[kEsp], kStack - 12);
}

/// With 16-bit addresses and a data segment whose last byte lies before a page that is not there.
class Ring3Wrapping : public Ring3 {
 protected:
  static constexpr std::uint32_t kBase = kAbsent - 0x10000;
  static Segment segment(std::uint32_t selector) {
    return {static_cast<std::uint16_t>(selector), selector << 4, 0xffff, 0xf3, false};
  }
  Ring3Wrapping() { state().segment[kDs] = {kData32, kBase, 0xffff, 0xf3, false}; }
};

TEST_P(Ring3Wrapping, SelectorOfAFarPointerGoesOnAtTheBeginning) {
  guest.put_word(kBase, kData32);
  guest.put_word(kBase + 0xfffc, 0x56789abc);
  code({0x67, 0xc4, 0x0e, 0xfc, 0xff});  // les ecx,[fffc]
  run();
  EXPECT_TRUE(deliveries.list.empty());
  EXPECT_EQ(cpu.gpr[kEcx], 0x56789abcu);
  EXPECT_EQ(cpu.segment[kEs], (Segment{kData32, 0, 0xffffffff, 0xc0f3, false}));
  EXPECT_EQ(cpu.eip, kCode + 5);
}

TEST_P(Ring3Wrapping, FarPointerOfSixteenBitsKeepsTheUpperHalf) {
  guest.put_word(kBase, 0);
  guest.put_word(kBase + 0xfffc, 0x56789abc);
  state().gpr[kEcx] = 0x11112222;
  code({0x66, 0x67, 0x0f, 0xb5, 0x0e, 0xfe, 0xff});  // lgs cx,[fffe]
  run();
  EXPECT_TRUE(deliveries.list.empty());
  EXPECT_EQ(cpu.gpr[kEcx], 0x11115678u);
  EXPECT_EQ(cpu.segment[kGs].selector, 0);
  EXPECT_TRUE(cpu.segment[kGs].unusable);
}

TEST_P(Ring3Wrapping, DescriptorOfAFarPointerBecomesAccessed) {
  descriptor(0x38, 0xffff, 0xcff200);
  guest.put_word(kBase, 0x3b);
  code({0x67, 0x0f, 0xb4, 0x0e, 0xfc, 0xff});  // lfs ecx,[fffc]
  run();
  EXPECT_TRUE(deliveries.list.empty());
  EXPECT_EQ(cpu.segment[kFs], (Segment{0x3b, 0, 0xffffffff, 0xc0f3, false}));
  EXPECT_EQ(word(kGdt + 0x3c), 0xcff300u);
}

TEST_P(Ring3Wrapping, FarPointerToWhatMayNotBeLoadedIsRefused) {
  struct Case {
    std::uint32_t selector;
    int opcode;
    unsigned vector;
    std::uint32_t error;
  };
  descriptor(0x38, 0xffff, 0xcf7300);
  for (const Case& c : {Case{0x10, 0xb4, 13, 0x10},     // a system's
                        Case{0x73, 0xb4, 13, 0x70},     // beyond the table
                        Case{0x3b, 0xb4, 11, 0x38},     // absent
                        Case{0x3b, 0xb2, 12, 0x38},     // the same, of a stack
                        Case{kCode32, 0xb2, 13, 0x18},  // no stack
                        Case{0, 0xb2, 13, 0}}) {
    guest.put_word(kBase, c.selector);
    code({0x67, 0x0f, c.opcode, 0x0e, 0xfc, 0xff});
    deliveries.list.clear();
    memory.clear();
    run();
    expect_refused(c.vector, c.error);
  }
}

TEST_P(Ring3Wrapping, FarJumpThroughAPointerGoesOnAtTheBeginning) {
  guest.put_word(kBase, kShortCode);
  guest.put_word(kBase + 0xfffc, 0x5abc0000);
  code({0x66, 0x67, 0xff, 0x2e, 0xfe, 0xff});
  run();
  EXPECT_TRUE(deliveries.list.empty());
  EXPECT_EQ(cpu.eip, 0x5abcu);
  EXPECT_EQ(cpu.segment[kCs].selector, kShortCode);
}

TEST_P(Ring3Wrapping, FarTransferInVirtual8086ModeGoesOnAtTheBeginning) {
  for (const int reg : {0x2e, 0x1e}) {  // jmp, call
    CpuState& s = state();
    s.eflags = 0x23202;
    for (const int i : {kEs, kSs, kDs, kFs, kGs})
      s.segment[static_cast<std::size_t>(i)] = segment(kBase >> 4);
    s.segment[kCs] = segment(kCode >> 4);
    s.eip = 0;
    s.gpr[kEsp] = 0x800;
    guest.put_word(kBase, 0x0600);
    guest.put_word(kBase + 0xfffc, 0x00100000);
    code({0xff, reg, 0xfe, 0xff});
    memory.clear();
    run();
    EXPECT_TRUE(deliveries.list.empty());
    EXPECT_EQ(cpu.eip, 0x10u);
    EXPECT_EQ(cpu.segment[kCs], segment(0x600));
    EXPECT_EQ(cpu.gpr[kEsp], reg == 0x2e ? 0x800u : 0x7fcu);
    if (reg == 0x1e) {
      EXPECT_EQ(word(kBase + 0x7fc), (kCode >> 4) << 16 | 4u);
    }
  }
}

TEST_P(Ring3Wrapping, UpperBoundGoesOnAtTheBeginning) {
  guest.put_word(kBase, 20);
  guest.put_word(kBase + 0xfffc, 0xfff60000);  // -10
  for (const int index : {-11, -10, 20, 21}) {
    state().gpr[kEcx] = static_cast<std::uint32_t>(index);
    code({0x66, 0x67, 0x62, 0x0e, 0xfe, 0xff});
    deliveries.list.clear();
    memory.clear();
    run();
    if (index == -11 || index == 21) {
      expect_delivered(5, kCode);
    } else {
      EXPECT_TRUE(deliveries.list.empty());
      EXPECT_EQ(cpu.eip, kCode + 6);
    }
  }
}

TEST_P(Ring3Wrapping, PartsOfFloatingOperandsGoOnAtTheBeginning) {
  state().cr0 &= ~0xcu;
  state().fx[0] = 0x7f;
  state().fx[1] = 0x03;
  guest.put_word(kBase, 0x55555555);
  code({0xd9, 0xe8, 0x67, 0xdb, 0x3e, 0xf8, 0xff});  // fld1; fstp t [fff8]
  run(2);
  EXPECT_TRUE(deliveries.list.empty());
  EXPECT_EQ(word(kBase + 0xfffc), 0x80000000u);
  EXPECT_EQ(word(kBase), 0x55553fffu);

  memory.clear();
  code({0x67, 0xd9, 0x36, 0xfc, 0xff, 0x67, 0xd9, 0x26, 0xfc, 0xff});  // fnstenv; fldenv [fffc]
  guest.put_word(kBase + 4, 0x55555555);
  run(2);
  EXPECT_TRUE(deliveries.list.empty());
  EXPECT_EQ(word(kBase + 0xfffc), 0xffff037fu);
  EXPECT_EQ(word(kBase), 0xffff0000u);
  EXPECT_EQ(word(kBase + 4), 0xffffffffu);
  EXPECT_EQ(cpu.fx[0], 0x7f);
}

TEST_P(Ring3Wrapping, PartThatReachesBeyondTheSegmentIsRefused) {
  state().cr0 &= ~0xcu;
  for (const int offset : {0xf7, 0xf9}) {
    code({0x67, 0xdb, 0x2e, offset, 0xff});  // fld t
    deliveries.list.clear();
    memory.clear();
    run();
    expect_refused(13, 0);
  }
}

TEST_P(Ring3, ShiftByZeroNeedsTheRightToWriteToItsSegmentFirst) {
  state().segment[kDs] = {kCode32, 0, 0xffffffff, 0xc0fb, false};
  for (const std::initializer_list<int> bytes :
       {std::initializer_list<int>{0xc0, 0x25, 0, 0, 2, 0, 0}, {0xd2, 0x05, 0, 0, 2, 0}}) {
    code(bytes);  // shl byte [20000],0; rol byte [20000],cl: not there either
    deliveries.list.clear();
    memory.clear();
    run();
    expect_refused(13, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(, Ring3Wrapping, both_paths(), path_name);
INSTANTIATE_TEST_SUITE_P(, Ring3LockedBitTest, both_paths(), path_name);
INSTANTIATE_TEST_SUITE_P(, Ring3, both_paths(), path_name);

}  // namespace
}  // namespace citcat
