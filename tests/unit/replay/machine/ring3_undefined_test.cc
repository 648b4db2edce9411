// Instructions that are undefined, and when that is found out.

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>

#include "unit/replay/machine/both_paths.h"
#include "unit/replay/machine/ring3.h"

namespace citcat {
namespace {

class Ring3Undefined : public test::Ring3 {};

TEST_P(Ring3Undefined, UndefinedInstructionThatTheSegmentCutsOffIsAProtectionFault) {
  state().segment[kCs] = {kShortCode, 0, kCode, 0x40fb, false};
  code({0x0f, 0x0b});
  run();
  expect_refused(13, 0);
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

class Ring3LockedBitTest : public Ring3Undefined {
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

TEST_P(Ring3Undefined, LockedBitTestOfARegisterMayFollowInABlock) {
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

TEST_P(Ring3Undefined, LockedBitTestOfARegisterMayLieAcrossPages) {
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

TEST_P(Ring3Undefined, LockedBitTestOfARegisterIsNotChangedBeforeItIsMet) {
  code({0xa1, 0x05, 0x50, 0, 0, 0xf0, 0x0f, 0xab, 0xc1});  // mov eax,[5005]
  run(2);
  expect_undefined(kCode + 5);
  EXPECT_EQ(cpu.gpr[kEax], 0xc1ab0ff0u);
  EXPECT_EQ(word(kCode + 5), 0xc1ab0ff0u);
}

TEST_P(Ring3Undefined, LockedBitTestOfARegisterThatIsPatchedIsExecuted) {
  code({0xc6, 0x05, 0x07, 0x50, 0, 0, 0x90, 0xf0, 0x0f, 0xab, 0xc1});  // mov byte [5007],90
  state().gpr[kEax] = 4;
  run(3);
  EXPECT_TRUE(deliveries.list.empty());
  EXPECT_EQ(cpu.gpr[kEcx], 0x10u);
  EXPECT_EQ(cpu.eip, kCode + 11);
}

TEST_P(Ring3Undefined, BitTestOfARegisterThatIsPatchedIsUndefined) {
  code({0xc6, 0x05, 0x07, 0x50, 0, 0, 0xf0, 0x90, 0x0f, 0xab, 0xc1});  // mov byte [5007],f0
  run(2);
  expect_undefined(kCode + 7);
}

TEST_P(Ring3Undefined, LockedBitTestOfMemoryIsUndefinedOnlyWhereItWritesNothing) {
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

TEST_P(Ring3Undefined, UndefinedInstructionNeedsNoBytesBeyondItsOpcode) {
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

INSTANTIATE_TEST_SUITE_P(, Ring3LockedBitTest, both_paths(), path_name);
INSTANTIATE_TEST_SUITE_P(, Ring3Undefined, both_paths(), path_name);

}  // namespace
}  // namespace citcat
