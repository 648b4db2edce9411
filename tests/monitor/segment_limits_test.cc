// Accesses that a processor refuses by its segments, and the emulator makes.

#include "monitor/instructions/segment_limits.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "monitor/instructions/insn_class.h"

namespace citcat::monitor {
namespace {

constexpr unsigned kEs = 0, kCs = 1, kSs = 2, kDs = 3, kFs = 4, kGs = 5;

/// Second dwords of descriptors.
constexpr std::uint32_t kData = 0x409300, kDataReadOnly = 0x409100, kExpandDown = 0x409700,
                        kExpandDown16 = 0x9700, kCodeReadable = 0x409b00, kCodeOnly = 0x409900;

class SegmentLimitsTest : public testing::Test {
 protected:
  SegmentLimitsTest() {
    for (LoggedSegment& s : state_.segment) s = {0x10, 0, 0xffffffff, 0xcf9300};
  }
  void learn(SegmentMode mode = SegmentMode::protected_mode) {
    limits_.learn(
        mode, [this](unsigned n) { return static_cast<std::uint16_t>(state_.segment[n].selector); },
        [this] {
          ++asked_;
          return state_;
        });
  }
  /// DS is this segment of protected mode.
  void describe(LoggedSegment segment) {
    state_.segment[kDs] = segment;
    limits_.forget(1u << kDs);
    learn();
  }

  LoggedState state_;
  SegmentLimits limits_;
  unsigned asked_ = 0;
};

TEST_F(SegmentLimitsTest, AFlatSegmentAllowsEverything) {
  learn();
  EXPECT_TRUE(limits_.allows_all(kDs, kSs));
  EXPECT_TRUE(limits_.allows(kDs, 0xfffffffc, 4, true));
}

TEST_F(SegmentLimitsTest, AnAccessEndsAtTheLimit) {
  describe({0x20, 0x1000, 0xff, kData});
  EXPECT_FALSE(limits_.allows_all(kDs, InsnClass::kNoSegment));
  EXPECT_TRUE(limits_.allows_all(kEs, kSs));
  EXPECT_TRUE(limits_.allows(kDs, 0x10fc, 4, true));
  EXPECT_FALSE(limits_.allows(kDs, 0x10fd, 4, false));
  EXPECT_TRUE(limits_.allows(kDs, 0x10ff, 1, false));
  EXPECT_FALSE(limits_.allows(kDs, 0x1100, 1, false));
  EXPECT_FALSE(limits_.allows(kDs, 0xfff, 1, false));
}

TEST_F(SegmentLimitsTest, WhatExpandsDownBeginsBehindTheLimit) {
  describe({0x20, 0, 0xfff, kExpandDown});
  EXPECT_TRUE(limits_.allows(kDs, 0x1000, 4, true));
  EXPECT_FALSE(limits_.allows(kDs, 0xfff, 4, true));
  EXPECT_TRUE(limits_.allows(kDs, 0xfffffffc, 4, true));
  EXPECT_FALSE(limits_.allows(kDs, 0xfffffffe, 4, true));
  describe({0x28, 0, 0xfff, kExpandDown16});
  EXPECT_TRUE(limits_.allows(kDs, 0xfffe, 2, true));
  EXPECT_FALSE(limits_.allows(kDs, 0xffff, 2, true));
  describe({0x30, 0, 0xffffffff, kExpandDown});
  EXPECT_FALSE(limits_.allows(kDs, 0, 1, true));
}

TEST_F(SegmentLimitsTest, TheTypeSaysWhatMayBeDone) {
  describe({0x20, 0, 0xffffffff, kDataReadOnly});
  EXPECT_TRUE(limits_.allows(kDs, 0, 4, false));
  EXPECT_FALSE(limits_.allows(kDs, 0, 4, true));
  describe({0x28, 0, 0xffffffff, kCodeReadable});
  EXPECT_TRUE(limits_.allows(kDs, 0, 4, false));
  EXPECT_FALSE(limits_.allows(kDs, 0, 4, true));
  describe({0x30, 0, 0xffffffff, kCodeOnly});
  EXPECT_FALSE(limits_.allows(kDs, 0, 4, false));
}

TEST_F(SegmentLimitsTest, ANullSelectorAllowsNothing) {
  state_.segment[kFs].selector = 3;
  learn();
  EXPECT_FALSE(limits_.allows(kFs, 0, 1, false));
  EXPECT_TRUE(limits_.allows(kGs, 0, 1, false));
}

TEST_F(SegmentLimitsTest, AFlatSelectorIsNotAskedAboutAgain) {
  learn();
  EXPECT_EQ(asked_, 1u);
  limits_.forget(SegmentLimits::kEvery);
  learn();
  EXPECT_EQ(asked_, 1u);
  EXPECT_TRUE(limits_.allows_all(kDs, kSs));
  limits_.forget_selectors();
  limits_.forget(1u << kDs);
  learn();
  EXPECT_EQ(asked_, 2u);
}

TEST_F(SegmentLimitsTest, ALimitedSelectorIsAskedAboutAgain) {
  describe({0x20, 0, 0xff, kData});
  EXPECT_FALSE(limits_.allows(kDs, 0x100, 1, false));
  describe({0x20, 0, 0x1ff, kData});
  EXPECT_TRUE(limits_.allows(kDs, 0x100, 1, false));
}

TEST_F(SegmentLimitsTest, NothingIsRefusedByASegmentThatIsNotKnown) {
  describe({0x20, 0, 0xff, kData});
  limits_.forget(1u << kDs);
  EXPECT_TRUE(limits_.allows(kDs, 0x100, 1, false));
}

TEST_F(SegmentLimitsTest, RealModeKeepsLimitsAndMovesBases) {
  state_.segment[kDs] = {0x10, 0, 0xffffffff, kData};
  state_.segment[kEs] = {0x100, 0x1000, 0xffff, kData};
  state_.segment[kCs] = {0xf000, 0xffff0000, 0xffff, kData};
  learn(SegmentMode::real);
  EXPECT_TRUE(limits_.allows(kDs, 0x120000, 4, true));
  EXPECT_TRUE(limits_.allows(kCs, 0xfffffffe, 2, false));
  EXPECT_TRUE(limits_.allows(kEs, 0x10ffe, 2, true));
  EXPECT_FALSE(limits_.allows(kEs, 0x10fff, 2, true));
  state_.segment[kEs].selector = 0x200;
  limits_.forget(1u << kEs);
  learn(SegmentMode::real);
  EXPECT_EQ(asked_, 1u);
  EXPECT_TRUE(limits_.allows(kEs, 0x11ffe, 2, true));
  EXPECT_FALSE(limits_.allows(kEs, 0x11fff, 2, true));
}

TEST_F(SegmentLimitsTest, SegmentsOfVirtual8086ModeHave64KiB) {
  state_.segment[kDs] = {0x1234, 0, 0, 0};
  learn(SegmentMode::virtual8086);
  EXPECT_EQ(asked_, 0u);
  EXPECT_TRUE(limits_.allows(kDs, 0x2233e, 2, true));
  EXPECT_FALSE(limits_.allows(kDs, 0x2233f, 2, true));
}

// ---- which segments an instruction goes through

struct UseRow {
  std::vector<std::uint8_t> bytes;
  int load, store;
  unsigned loaded;
};

TEST(SegmentUse, IsKnownOfOrdinaryInstructions) {
  constexpr int kNone = InsnClass::kNoSegment;
  const UseRow rows[] = {
      {{0x8b, 0x06}, kDs, kNone, 0},                       // mov eax, [esi]
      {{0x8b, 0x45, 0x08}, kSs, kNone, 0},                 // mov eax, [ebp + 8]
      {{0x8b, 0x04, 0x24}, kSs, kNone, 0},                 // mov eax, [esp]
      {{0x26, 0x8b, 0x45, 0x08}, kEs, kNone, 0},           // mov eax, es:[ebp + 8]
      {{0x67, 0x8b, 0x02}, kSs, kNone, 0},                 // mov eax, [bp + si]
      {{0x89, 0xc8}, kNone, kNone, 0},                     // mov eax, ecx
      {{0x50}, kNone, kSs, 0},                             // push eax
      {{0x5f}, kSs, kNone, 0},                             // pop edi
      {{0xff, 0x36}, kDs, kSs, 0},                         // push [esi]
      {{0x8f, 0x06}, kSs, kDs, 0},                         // pop [esi]
      {{0xff, 0x16}, kDs, kSs, 0},                         // call [esi]
      {{0xe8, 0, 0, 0, 0}, kNone, kSs, 0},                 // call
      {{0xc3}, kSs, kNone, 0},                             // ret
      {{0x64, 0xa1, 0, 0, 0, 0}, kFs, kNone, 0},           // mov eax, fs:[0]
      {{0x2e, 0xd7}, kCs, kNone, 0},                       // xlat cs:[ebx]
      {{0xf3, 0xa5}, kDs, kEs, 0},                         // rep movsd
      {{0x65, 0xa5}, kGs, kEs, 0},                         // movs es, gs
      {{0x26, 0xac}, kEs, kNone, 0},                       // lods es
      {{0xaf}, kEs, kNone, 0},                             // scasd
      {{0xa7}, kNone, kNone, 0},                           // cmpsd, through two
      {{0xd9, 0x06}, kDs, kNone, 0},                       // fld [esi]
      {{0x0f, 0xb6, 0x06}, kDs, kNone, 0},                 // movzx eax, [esi]
      {{0x01, 0x45, 0x08}, kSs, kSs, 0},                   // add [ebp + 8], eax
      {{0x89, 0x06}, kNone, kDs, 0},                       // mov [esi], eax
      {{0x0f, 0x38, 0x00, 0x45, 0x08}, kSs, kNone, 0},     // pshufb mm0, [ebp + 8]
      {{0x66, 0x0f, 0x3a, 0x14, 0x06, 1}, kNone, kDs, 0},  // pextrb [esi], xmm0, 1
      {{0x0f, 0x02, 0x06}, kNone, kNone, 0},               // lar: reads a table
      {{0x8e, 0xd8}, kNone, kNone, 1u << kDs},             // mov ds, eax
      {{0x0f, 0xb2, 0x26}, kNone, kNone, 1u << kSs},       // lss esp, [esi]
      {{0x07}, kNone, kNone, 1u << kEs},                   // pop es
      {{0xcf}, kNone, kNone, 0x3f},                        // iret
      {{0x0f, 0x34}, kNone, kNone, 0x3f},                  // sysenter
  };
  for (const UseRow& row : rows) {
    const InsnClass what = classify(row.bytes, CodeSize::bits32);
    SCOPED_TRACE(testing::PrintToString(row.bytes));
    EXPECT_EQ(what.loads_from, row.load);
    EXPECT_EQ(what.stores_to, row.store);
    EXPECT_EQ(what.loaded_segments, row.loaded);
  }
}

TEST(SegmentUse, IsNotLookedAtIn64BitMode) {
  const std::vector<std::uint8_t> load{0x8b, 0x06};
  EXPECT_EQ(classify(load, CodeSize::bits64).loads_from, InsnClass::kNoSegment);
}

}  // namespace
}  // namespace citcat::monitor
