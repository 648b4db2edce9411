// Operands in parts, with 16-bit addresses: each part goes on at 0 behind FFFF.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "unit/replay/machine/both_paths.h"
#include "unit/replay/machine/ring3.h"

namespace citcat {
namespace {

/// With 16-bit addresses and a data segment whose last byte lies before a page that is not there.
class Ring3Wrapping : public test::Ring3 {
 protected:
  static constexpr std::uint32_t kBase = kAbsent - 0x10000;
  static Segment segment(std::uint32_t selector) {
    return {static_cast<std::uint16_t>(selector), selector << 4, 0xffff, 0xf3, false};
  }
  /// At the beginning of its code, all other segments at kBase.
  void virtual8086() {
    CpuState& s = state();
    s.eflags = 0x23202;
    for (const int i : {kEs, kSs, kDs, kFs, kGs})
      s.segment[static_cast<std::size_t>(i)] = segment(kBase >> 4);
    s.segment[kCs] = segment(kCode >> 4);
    s.eip = 0;
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
    virtual8086();
    state().gpr[kEsp] = 0x800;
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

/// The far return pops IP and CS, or EIP and CS, each at an offset of its own.
TEST_P(Ring3Wrapping, FarReturnInVirtual8086ModeGoesOnAtTheBeginning) {
  for (const bool wide : {false, true}) {
    for (const int releases : {-1, 4, 0x8004}) {
      SCOPED_TRACE(testing::Message() << wide << " releases " << releases);
      virtual8086();
      CpuState& s = state();
      s.gpr[kEsp] = wide ? 0xfffc : 0xfffe;
      guest.put_word(kBase + 0xfffc, wide ? 0x10 : 0x00100000);
      guest.put_word(kBase, 0x0600);
      const std::initializer_list<int> plain{0xcb}, more{0xca, 4, releases >> 8};
      guest.put(kCode, {0x66, 0x66, 0x66});
      s.eip = wide ? 2 : 3;
      guest.put(kCode + 3, releases < 0 ? plain : more);
      deliveries.list.clear();
      memory.clear();
      run();
      EXPECT_TRUE(deliveries.list.empty());
      EXPECT_EQ(cpu.eip, 0x10u);
      EXPECT_EQ(cpu.segment[kCs], segment(0x600));
      const auto released = static_cast<std::uint32_t>(std::max(releases, 0));
      EXPECT_EQ(cpu.gpr[kEsp], ((wide ? 4u : 2u) + released) & 0xffff);
    }
  }
}

TEST_P(Ring3Wrapping, FarReturnWhoseSelectorReachesBeyondTheSegmentIsRefused) {
  virtual8086();
  state().gpr[kEsp] = 0xfffd;
  code({0xcb});
  run();
  ASSERT_FALSE(deliveries.list.empty());
  EXPECT_EQ(deliveries.list.back().vector, 12);
}

INSTANTIATE_TEST_SUITE_P(, Ring3Wrapping, both_paths(), path_name);

}  // namespace
}  // namespace citcat
