// Transfers of control at level 3: what refuses them, in which order, and where they lead.

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>

#include "unit/replay/machine/both_paths.h"
#include "unit/replay/machine/ring3.h"

namespace citcat {
namespace {

using test::PagedGuest;

class Ring3Transfers : public test::Ring3 {};

// SDM vol. 3, table 6-4: INT n is benign, so a fault on its way makes no double fault.
TEST_P(Ring3Transfers, InterruptInstructionThatItsGateRefusesIsAProtectionFault) {
  code({0xcd, 12});
  run();
  expect_refused(13, 12 * 8 + 2);
}

// SDM vol. 2, CALL: the level changes when all is done. Seen in an emulator's recordings.
TEST_P(Ring3Transfers, ParametersOfACallGateAreReadWithTheRightsOfTheCaller) {
  descriptor(0x38, 0x80000 | kHandlers, 0xec02);
  guest.put_word(PagedGuest::kTable + 4 * (kStack / kPageSize),
                 (kStack & ~(kPageSize - 1)) | (kPresentUserUsed & ~4u));
  code({0x9a, 0, 0, 0, 0, 0x3b, 0});
  run();
  expect_refused(14, 5);
}

TEST_P(Ring3Transfers, ReturnReleasesAsMuchAsItsOperandSays) {
  state().gpr[kEsp] = kData;
  guest.put_word(kData, 0x6000);
  code({0xc2, 0x02, 0x80});  // ret 8002h
  run();
  EXPECT_EQ(cpu.eip, 0x6000u);
  EXPECT_EQ(cpu.gpr[kEsp], kData + 4 + 0x8002);
}

TEST_P(Ring3Transfers, NearTransferBeyondTheSegmentIsRefusedBeforeItIsMade) {
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

TEST_P(Ring3Transfers, ConditionalJumpThatIsNotTakenIsNotRefused) {
  short_code();
  code({0x0f, 0x84, 0, 0x20, 0, 0});  // je
  run();
  EXPECT_TRUE(deliveries.list.empty());
  EXPECT_EQ(cpu.eip, kCode + 6);
}

TEST_P(Ring3Transfers, LoopBeyondTheSegmentLeavesItsCounter) {
  state().gpr[kEcx] = 2;
  state().segment[kCs] = {kShortCode, 0, 0x5010, 0x40fb, false};
  code({0xe2, 0x40});
  run();
  expect_refused(13, 0);
  EXPECT_EQ(cpu.gpr[kEcx], 2u);
}

TEST_P(Ring3Transfers, FarTransferBeyondTheSegmentNamesNoSelectorAndStoresNothing) {
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

TEST_P(Ring3Transfers, FarCallLooksAtItsSelectorBeforeItsStack) {
  state().gpr[kEsp] = kAbsent + 0x800;
  code({0x9a, 0, 0x50, 0, 0, 0x73, 0});  // beyond the table
  run();
  expect_refused(13, 0x70);
}

TEST_P(Ring3Transfers, FarCallWithinTheSegmentReturnsBehindItself) {
  code({0x9a, 0x10, 0x50, 0, 0, kShortCode, 0});
  run();
  EXPECT_TRUE(deliveries.list.empty());
  EXPECT_EQ(cpu.eip, 0x5010u);
  EXPECT_EQ(cpu.segment[kCs], (Segment{kShortCode, 0, 0x5fff, 0x40fb, false}));
  EXPECT_EQ(word(kStack - 4), std::uint32_t{kCode32});
  EXPECT_EQ(word(kStack - 8), kCode + 7);
}

TEST_P(Ring3Transfers, FarCallOnAStackThatGrowsDownStopsAtItsLimit) {
  state().segment[kSs] = {kData32, 0, 0x22900, 0x40f7, false};
  code({0x9a, 0x10, 0x50, 0, 0, kShortCode, 0});
  run();
  expect_refused(12, 0);
}

// SDM vol. 2, IRET: VM is looked at where CPL is 0.
TEST_P(Ring3Transfers, InterruptReturnDoesNotEnterVirtual8086Mode) {
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

TEST_P(Ring3Transfers, FetchBeyondTheSegmentIsRefusedBeforeItsPageIsLookedAt) {
  short_code();
  state().eip = kAbsent;
  run();
  expect_refused(13, 0);
}

/// At the end of 64 KiB.
TEST_P(Ring3Transfers, SixteenBitCodeDoesNotGoOnAtItsBeginning) {
  state().segment[kCs] = {kShortCode, kCode - 0xffff, 0xffff, 0xfb, false};
  state().eip = 0xffff;
  code({0x9b});  // fwait
  guest.recording.initial.cr0 &= ~0xau;
  run();
  EXPECT_TRUE(deliveries.list.empty());
  EXPECT_EQ(cpu.eip, 0x10000u);
}

TEST_P(Ring3Transfers, FarReturnBeyondTheSegmentIsRefusedBeforeItIsMade) {
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

TEST_P(Ring3Transfers, FarReturnToTheEndOfTheSegmentIsMade) {
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

TEST_P(Ring3Transfers, FarReturnNamesWhatIsWrongWithItsSelectorFirst) {
  guest.put_word(kStack, 0x6000);
  guest.put_word(kStack + 4, kData32);
  code({0xcb});
  run();
  expect_refused(13, kData32 & 0xfc);
}

TEST_P(Ring3Transfers, CallThatStoresOverItselfIsMadeOnce) {
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

TEST_P(Ring3Transfers, CallOfItselfIsMade) {
  for (const std::uint32_t before : {0, 1}) {
    guest.put(kCode, {0x43, 0xe8, 0xfb, 0xff, 0xff, 0xff});
    state().eip = kCode + 1 - before;
    run(3 + before);
    EXPECT_TRUE(deliveries.list.empty());
    EXPECT_EQ(cpu.eip, kCode + 1);
    EXPECT_EQ(cpu.gpr[kEsp], kStack - 12);
  }
}

TEST_P(Ring3Transfers, IndirectCallOfItselfIsMade) {
  state().gpr[kEax] = kCode;
  code({0xff, 0xd0});
  run(3);
  EXPECT_TRUE(deliveries.list.empty());
  EXPECT_EQ(cpu.eip, kCode);
  EXPECT_EQ(cpu.gpr[kEsp], kStack - 12);
}

TEST_P(Ring3Transfers, IndirectCallOfItselfBehindOthersIsCounted) {
  state().gpr[kEax] = kCode + 2;
  guest.put_word(kData, kCode + 2);
  for (const int operand : {0xd0, 0x16}) {  // eax; [esi]
    code({0x43, 0x43, 0xff, operand});      // inc ebx; inc ebx; call
    run(6);
    EXPECT_TRUE(deliveries.list.empty());
    EXPECT_EQ(cpu.eip, kCode + 2);
    EXPECT_EQ(cpu.gpr[kEbx], 2u);
    EXPECT_EQ(cpu.gpr[kEsp], kStack - 16);
  }
}

TEST_P(Ring3Transfers, CallThatStoresOverItsPointerGoesWhereThatPointed) {
  guest.put_word(kStack - 4, 0x6000);
  guest.put(0x6000, {0x43, 0xeb, 0xfe});
  code({0x43, 0xff, 0x54, 0x24, 0xfc});  // inc ebx; call [esp-4]
  run(3);
  EXPECT_TRUE(deliveries.list.empty());
  EXPECT_EQ(cpu.eip, 0x6001u);
  EXPECT_EQ(cpu.gpr[kEbx], 2u);
  EXPECT_EQ(word(kStack - 4), kCode + 5);
}

/// RETF 8004h.
class Ring3FarReturn : public Ring3Transfers {
 protected:
  static constexpr std::uint32_t kReleased = 0x8004, kTarget = 0x6000, kOuterStack = 0x3000,
                                 kFrame = kData + 0x100;
  Ring3FarReturn() {
    code({0xca, 0x04, 0x80});
    state().gpr[kEsp] = kFrame;
    guest.put_word(kFrame, kTarget);
    guest.put_word(kFrame + 4, kCode32);
    guest.put_word(kFrame + 8 + kReleased, kOuterStack);
    guest.put_word(kFrame + 12 + kReleased, kData32);
  }
  /// At level 0.
  void supervise() {
    CpuState& s = state();
    s.segment.fill({0x10, 0, 0xffffffff, 0xc093, false});
    s.segment[kCs] = {8, 0, 0xffffffff, 0xc09b, false};
    s.segment[kDs] = {0x23, 0, 0xffffffff, 0xc0f3, false};
  }
  void expect_returned(std::uint32_t esp) {
    EXPECT_TRUE(deliveries.list.empty());
    EXPECT_EQ(cpu.eip, kTarget);
    EXPECT_EQ(cpu.segment[kCs], (Segment{kCode32, 0, 0xffffffff, 0xc0fb, false}));
    EXPECT_EQ(cpu.gpr[kEsp], esp);
  }
  void expect_refusal(unsigned vector, std::uint32_t error) {
    ASSERT_EQ(deliveries.list.size(), 1u);
    EXPECT_EQ(unsigned{deliveries.list.back().vector}, vector);
    EXPECT_EQ(deliveries.list.back().eip, state().eip);
    EXPECT_EQ(deliveries.list.back().error_code, error);
  }
};

TEST_P(Ring3FarReturn, ReleasesAsMuchAsItsOperandSays) {
  run();
  expect_returned(kFrame + 8 + kReleased);
}

TEST_P(Ring3FarReturn, MovesSixteenBitsOfASmallStack) {
  state().segment[kSs] = {kData32, kFrame, 0xffff, 0xf3, false};
  state().gpr[kEsp] = 0x12340000;
  run();
  expect_returned(0x12340000 + 8 + kReleased);
}

TEST_P(Ring3FarReturn, ReleasesOfBothStacksWhereTheLevelChanges) {
  supervise();
  state().segment[kEs] = {0x10, 0, 0xffffffff, 0xc093, false};
  run();
  expect_returned(kOuterStack + kReleased);
  EXPECT_EQ(cpu.segment[kSs], (Segment{kData32, 0, 0xffffffff, 0xc0f3, false}));
  // What the outer level may not use is null (SDM vol. 2, RET).
  EXPECT_TRUE(cpu.segment[kEs].unusable);
  EXPECT_EQ(cpu.segment[kEs].selector, 0);
  EXPECT_EQ(cpu.segment[kDs].selector, kData32);
}

TEST_P(Ring3FarReturn, ReleasesOfAWideOuterStackFromASmallInnerOne) {
  supervise();
  state().segment[kSs] = {0x10, kFrame, 0xffff, 0x93, false};
  state().gpr[kEsp] = 0;
  run();
  expect_returned(kOuterStack + kReleased);
}

TEST_P(Ring3FarReturn, MarksTheDescriptorsItLoads) {
  supervise();
  descriptor(0x18, 0xffff, 0xcffa00);
  descriptor(0x20, 0xffff, 0xcff200);
  run();
  expect_returned(kOuterStack + kReleased);
  EXPECT_EQ(word(kGdt + 0x1c), 0xcffb00u);
  EXPECT_EQ(word(kGdt + 0x24), 0xcff300u);
}

TEST_P(Ring3FarReturn, IsRefusedAsItsSelectorSays) {
  struct Case {
    std::uint32_t selector;
    unsigned vector;
    std::uint32_t error;
  };
  descriptor(0x38, 0xffff, 0xcf7b00);
  for (const Case& c : {Case{0, 13, 0}, Case{8, 13, 8}, Case{0x73, 13, 0x70}, Case{0x23, 13, 0x20},
                        Case{0x3b, 11, 0x38}, Case{0x33, 13, 0}}) {
    SCOPED_TRACE(c.selector);
    guest.put_word(kFrame + 4, c.selector);
    deliveries.list.clear();
    memory.clear();
    run();
    expect_refusal(c.vector, c.error);
  }
}

TEST_P(Ring3FarReturn, IsRefusedAsTheOuterStackSays) {
  struct Case {
    std::uint32_t selector;
    unsigned vector;
    std::uint32_t error;
  };
  descriptor(0x38, 0xffff, 0xcf7300);
  supervise();
  for (const Case& c : {Case{0, 13, 0}, Case{0x10, 13, 0x10}, Case{0x73, 13, 0x70},
                        Case{0x1b, 13, 0x18}, Case{0x3b, 12, 0x38}}) {
    SCOPED_TRACE(c.selector);
    guest.put_word(kFrame + 12 + kReleased, c.selector);
    deliveries.list.clear();
    memory.clear();
    run();
    expect_refusal(c.vector, c.error);
  }
}

TEST_P(Ring3FarReturn, IsRefusedWhereItsStackIsNotThere) {
  state().gpr[kEsp] = kAbsent - 4;
  run();
  expect_refusal(14, 4);
}

TEST_P(Ring3FarReturn, StepsOnce) {
  state().eflags |= 0x100;
  run();
  ASSERT_EQ(deliveries.list.size(), 1u);
  EXPECT_EQ(deliveries.list.back().vector, 1);
  EXPECT_EQ(deliveries.list.back().eip, kTarget);
}

INSTANTIATE_TEST_SUITE_P(, Ring3FarReturn, both_paths(), path_name);
INSTANTIATE_TEST_SUITE_P(, Ring3Transfers, both_paths(), path_name);

}  // namespace
}  // namespace citcat
