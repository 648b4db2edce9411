// Operands at level 3: what refuses them, in which order, and how much of registers they change.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

#include "unit/replay/machine/both_paths.h"
#include "unit/replay/machine/ring3.h"

namespace citcat {
namespace {

class Ring3Operands : public test::Ring3 {};

// SDM vol. 2, ENTER: #PF if a write using the final value of the stack pointer would cause one.
TEST_P(Ring3Operands, EnterRefusesAFrameThatHasNoRoom) {
  code({0xc8, 0x00, 0x20, 0});  // enter 2000h,0
  run();
  expect_refused(14, 6);
  EXPECT_EQ(cpu.cr2, kStack - 4 - 0x2000);
  EXPECT_EQ(cpu.gpr[kEbp], 0x12345678u);
}

TEST_P(Ring3Operands, EnterOfSixteenBitsChangesHalfOfTheFramePointer) {
  code({0x66, 0xc8, 0x10, 0, 0});
  run();
  EXPECT_EQ(cpu.gpr[kEbp], 0x12340000u | ((kStack - 2) & 0xffff));
  EXPECT_EQ(cpu.gpr[kEsp], kStack - 2 - 0x10);
}

TEST_P(Ring3Operands, FloatingMoveGoesByTheFlags) {
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

TEST_P(Ring3Operands, VectorOperandThatIsNotAlignedIsRefused) {
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

TEST_P(Ring3Operands, LookingUpADescriptorChecksTheOperandsSegmentFirst) {
  state().segment[kDs] = {kData32, 0, 0xfff, 0x40f3, false};
  for (const int opcode : {0x02, 0x03}) {
    code({0x0f, opcode, 0x05, 0x00, 0x00, 0x02, 0x00});  // [20000], not there either
    deliveries.list.clear();
    memory.clear();
    run();
    expect_refused(13, 0);
  }
}

TEST_P(Ring3Operands, PopOfASegmentRegisterFaultsWithTheProgramsRights) {
  state().gpr[kEsp] = kAbsent - 2;
  guest.put(kAbsent - 2, {0x23, 0});
  code({0x1f});
  run();
  expect_refused(14, 4);
}

TEST_P(Ring3Operands, ChangingACodeSegmentIsRefusedBeforeItsPageIsLookedAt) {
  code({0x2e, 0x01, 0x05, 0x00, 0x00, 0x02, 0x00});  // add cs:[20000],eax
  run();
  expect_refused(13, 0);
}

TEST_P(Ring3Operands, ShiftByZeroNeedsTheRightToWriteToItsSegmentFirst) {
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

/// SDM vol. 2, PUSH: the selector is written by a move of 16 bits.
class Ring3SegmentPush : public Ring3Operands {
 protected:
  static constexpr std::uint32_t kUnused = 0x26000, kFilling = 0x55555555;
  Ring3SegmentPush() {
    guest.put_word(entry_of(kUnused), kUnused | 7);
    for (std::uint32_t at = kUnused - 8; at != kUnused + 8; at += 4) guest.put_word(at, kFilling);
  }
  void push(std::uint32_t slot) {
    state().gpr[kEsp] = slot + 4;
    code({0x1e});  // push ds
    run();
    EXPECT_TRUE(deliveries.list.empty());
    EXPECT_EQ(cpu.gpr[kEsp], slot);
    EXPECT_EQ(word(slot), (kFilling & 0xffff0000) | std::uint32_t{kData32});
    EXPECT_EQ(word(slot + 4), kFilling);
  }
  std::uint32_t entry() const { return word(entry_of(kUnused)); }
};

TEST_P(Ring3SegmentPush, DoesNotTouchThePageOfTheUpperHalf) {
  for (const std::uint32_t below : {2, 3}) {
    memory.clear();
    guest.put_word(kUnused - 4, kFilling);
    push(kUnused - below);
    EXPECT_EQ(entry(), kUnused | 7);
  }
}

TEST_P(Ring3SegmentPush, LeavesTheUpperHalfWhereTheLowerLiesInTwoPages) {
  push(kUnused - 1);
  EXPECT_EQ(entry(), kUnused | kPresentUserUsed);
}

TEST_P(Ring3SegmentPush, NeedsNoPageForTheUpperHalf) {
  state().gpr[kEsp] = kAbsent + 2;
  code({0x0f, 0xa0});  // push fs
  run();
  EXPECT_TRUE(deliveries.list.empty());
  EXPECT_EQ(cpu.gpr[kEsp], kAbsent - 2);
}

/// SDM vol. 2, PUNPCKLBW and its like: of memory, 32 bits for an MMX register.
TEST_P(Ring3Operands, UnpackingTheLowHalfReadsFourBytes) {
  CpuState& s = state();
  s.cr0 &= ~0xcu;
  s.fx[0] = 0x7f;
  s.fx[1] = 0x03;
  guest.put_word(kAbsent - 4, 0x44332211);
  using Expected = std::array<std::uint8_t, 10>;
  const auto unpacked = [&](int opcode) {
    for (std::size_t i = 0; i < 8; ++i) s.fx[32 + i] = static_cast<std::uint8_t>(i + 1);
    s.gpr[kEsi] = kAbsent - 4;
    code({0x0f, opcode, 0x06});  // [esi]
    memory.clear();
    run();
    EXPECT_TRUE(deliveries.list.empty());
    Expected found;
    std::copy_n(cpu.fx.begin() + 32, found.size(), found.begin());
    return found;
  };
  EXPECT_EQ(unpacked(0x60), (Expected{1, 0x11, 2, 0x22, 3, 0x33, 4, 0x44, 0xff, 0xff}));
  EXPECT_EQ(unpacked(0x61), (Expected{1, 2, 0x11, 0x22, 3, 4, 0x33, 0x44, 0xff, 0xff}));
  EXPECT_EQ(unpacked(0x62), (Expected{1, 2, 3, 4, 0x11, 0x22, 0x33, 0x44, 0xff, 0xff}));
}

INSTANTIATE_TEST_SUITE_P(, Ring3SegmentPush, both_paths(), path_name);
INSTANTIATE_TEST_SUITE_P(, Ring3Operands, both_paths(), path_name);

}  // namespace
}  // namespace citcat
