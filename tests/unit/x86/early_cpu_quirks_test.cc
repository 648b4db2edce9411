#include "x86/early_cpu_quirks.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <initializer_list>

#include "unit/x86/single_step_suite.h"

namespace citcat {
namespace {

using test::Registers16;

DecodedInstruction decode_early(std::initializer_list<std::uint8_t> bytes,
                                CpuModel model = CpuModel::i286) {
  return decode_instruction(std::span(bytes.begin(), bytes.size()), CodeMode{false, true}, model);
}

constexpr std::array<Gpr, 7> kCompared = {kEax, kEcx, kEdx, kEbx, kEbp, kEsi, kEdi};

/// The fault a test's string or plain instruction should meet, iteration by iteration.
std::optional<SegmentEndFault> predict(const DecodedInstruction& info, const Registers16& before) {
  std::array<std::uint64_t, 8> gpr = before.gpr;
  const bool down = (before.flags & 0x400) != 0;
  const auto step = static_cast<std::uint64_t>(down ? -info.operand_bytes : info.operand_bytes);
  while (!info.is_repeated() || gpr[kEcx] != 0) {
    if (const auto fault = segment_end_fault(info, gpr.data(), down)) return fault;
    if (!info.is_repeated()) break;
    for (unsigned i = 0; i < info.operand_count; ++i) {
      const auto reg = static_cast<std::size_t>(info.operands[i].base);
      gpr[reg] = (gpr[reg] + step) & 0xffff;
    }
    gpr[kEcx] -= 1;
  }
  return std::nullopt;
}

TEST(EarlyCpuQuirks, PredictEverySegmentEndFaultOfAn80286AndItsRegisters) {
  const std::vector<std::string> files = test::suite_files();
  if (files.empty()) GTEST_SKIP() << "no single-step suite (set CITCAT_SHARED)";
  std::uint64_t faults = 0, others = 0, invalid = 0;
  for (const std::string& path : files) {
    for (const MooTest& one : read_moo(path).tests) {
      const DecodedInstruction info =
          decode_instruction(one.bytes, CodeMode{false, true}, CpuModel::i286);
      if (info.state != DecodeState::ok) {
        const int vector = info.reason == InvalidReason::too_long ? 13 : 6;
        ASSERT_TRUE(one.exception) << path << " " << one.name;
        EXPECT_EQ(one.exception->number, vector) << path << " " << one.name;
        ++invalid;
        continue;
      }
      const bool compares = info.kind == InstructionClass::string && (info.opcode & 0xf6) == 0xa6;
      const Registers16 before = test::registers_before(one), after = test::registers_after(one);
      const bool faulted = one.exception && one.exception->number == 13;
      const std::optional<SegmentEndFault> fault = predict(info, before);
      if (!faulted) {
        // A comparison may stop before the iteration that would have faulted.
        EXPECT_TRUE(!fault || (compares && info.is_repeated())) << path << " " << one.name;
        ++others;
        continue;
      }
      ++faults;
      ASSERT_TRUE(fault) << path << " " << one.index << " " << one.name;
      for (const Gpr reg : kCompared) {
        EXPECT_EQ(fault->gpr[reg], after.gpr[reg])
            << path << " " << one.index << " " << one.name << " register " << reg;
      }
      EXPECT_EQ(static_cast<std::uint16_t>(fault->gpr[kEsp] - 6), after.gpr[kEsp])
          << path << " " << one.name;
    }
  }
  std::printf("%llu faults, %llu tests without, %llu invalid\n",
              static_cast<unsigned long long>(faults), static_cast<unsigned long long>(others),
              static_cast<unsigned long long>(invalid));
  EXPECT_GT(faults, 50u);
}

TEST(EarlyCpuQuirks, ShiftsByZeroWriteNothingOnTheBusOfAn80286) {
  const std::vector<std::string> files = test::suite_files();
  if (files.empty()) GTEST_SKIP() << "no single-step suite (set CITCAT_SHARED)";
  std::uint64_t silent = 0, written = 0;
  for (const std::string& path : files) {
    for (const MooTest& one : read_moo(path).tests) {
      const DecodedInstruction info =
          decode_instruction(one.bytes, CodeMode{false, true}, CpuModel::i286);
      if (info.state != DecodeState::ok || one.exception || info.operand_count == 0) continue;
      if (info.flag_rule < FlagRule::shift_left || info.flag_rule > FlagRule::rotate_carry_right)
        continue;
      bool writes = false;
      for (const test::BusAccess& access : test::data_accesses(one))
        writes = writes || access.write;
      const auto cl = static_cast<std::uint8_t>(test::registers_before(one).gpr[kEcx]);
      EXPECT_EQ(shift_writes_nothing(info, CpuModel::i286, cl), !writes) << path << " " << one.name;
      (writes ? written : silent) += 1;
    }
  }
  std::printf("%llu shifts silent, %llu written\n", static_cast<unsigned long long>(silent),
              static_cast<unsigned long long>(written));
  EXPECT_GT(silent, 10u);
}

TEST(EarlyCpuQuirks, TwoWordOperandsWrapAtTheEndOfTheSegment) {
  std::array<std::uint64_t, 8> gpr{};
  gpr[kEbx] = 0xfffe;
  EXPECT_TRUE(wraps_between_words(decode_early({0xc4, 0x07}), gpr.data()));
  EXPECT_TRUE(wraps_between_words(decode_early({0xff, 0x2f}), gpr.data()));
  EXPECT_FALSE(wraps_between_words(decode_early({0x8b, 0x07}), gpr.data()));
  gpr[kEbx] = 0xfffc;
  EXPECT_FALSE(wraps_between_words(decode_early({0xc4, 0x07}), gpr.data()));
  gpr[kEsp] = 0xfffe;
  EXPECT_TRUE(wraps_between_words(decode_early({0xcb}), gpr.data()));
}

TEST(EarlyCpuQuirks, EachEarlyProcessorHasItsOwnUpperFlagBits) {
  EXPECT_EQ(loaded_flags(CpuModel::i286, false, 0xffff), 0x0fd7u);
  EXPECT_EQ(loaded_flags(CpuModel::i286, true, 0x7fd7), 0x7fd7u);
  EXPECT_EQ(loaded_flags(CpuModel::i8088, false, 0), 0xf002u);
  EXPECT_EQ(loaded_flags(CpuModel::i386, false, 0x7fd7), 0x7fd7u);
}

TEST(EarlyCpuQuirks, The8088DiffersInShiftCountsPushSpAndDivideErrors) {
  EXPECT_EQ(shift_count_mask(CpuModel::i8088), 0xff);
  for (const int count : {0, 0x20}) {  // also by 0, which is stored
    EXPECT_FALSE(shift_writes_nothing(decode_early({0xd3, 0x27}, CpuModel::i8088), CpuModel::i8088,
                                      static_cast<std::uint8_t>(count)));
  }
  EXPECT_TRUE(shift_writes_nothing(decode_early({0xd3, 0x27}), CpuModel::i286, 0x20));
  EXPECT_EQ(pushed_stack_pointer(CpuModel::i8088, 0x100), 0xfe);
  EXPECT_EQ(pushed_stack_pointer(CpuModel::i286, 0x100), 0x100);
  EXPECT_TRUE(divide_error_points_past(CpuModel::i8088));
  EXPECT_FALSE(divide_error_points_past(CpuModel::i286));
}

TEST(EarlyCpuQuirks, AamByZeroClearsFlagsBeforeItFaultsOnThe286) {
  EXPECT_EQ(divide_error_flags(decode_early({0xd4, 0x00}), CpuModel::i286, 0xfd7), 0x706u);
  EXPECT_EQ(divide_error_flags(decode_early({0xf6, 0xf0}), CpuModel::i286, 0xfd7), 0xfd7u);
}

TEST(EarlyCpuQuirks, AnEscWithoutAnAnswerBecomesFiveOrThreePortWrites) {
  EXPECT_EQ(coprocessor_cycles(decode_early({0xd8, 0x07}), 0x100, 0x2000, 0x34, 0x3000).size(), 5u);
  EXPECT_EQ(coprocessor_cycles(decode_early({0xd8, 0xc1}), 0x100, 0x2000, 0, 0).size(), 3u);
}

}  // namespace
}  // namespace citcat
