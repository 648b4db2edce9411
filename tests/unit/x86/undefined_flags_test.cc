#include "x86/undefined_flags.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "unit/x86/single_step_suite.h"

namespace citcat {
namespace {

using test::Registers16;

constexpr std::uint32_t kArithmetic = 0x8d5;

/// Flags that the 80286 manual leaves undefined after an instruction of this kind: what an engine
/// may get wrong. Written down apart from the rules under test.
std::uint32_t undefined_mask(const DecodedInstruction& info, unsigned count) {
  switch (info.flag_rule) {
    case FlagRule::shift_left:
    case FlagRule::shift_right:
    case FlagRule::shift_arithmetic:
      return count == 0 ? 0 : 0x810;
    case FlagRule::rotate_left:
    case FlagRule::rotate_right:
    case FlagRule::rotate_carry_left:
    case FlagRule::rotate_carry_right:
      return count == 0 ? 0 : 0x800;
    case FlagRule::mul:
    case FlagRule::imul:
    case FlagRule::imul_two_operand:
      return 0x0d4;
    case FlagRule::div:
    case FlagRule::idiv:
      return 0x8d5;
    case FlagRule::daa:
    case FlagRule::das:
      return 0x800;
    case FlagRule::aaa:
    case FlagRule::aas:
      return 0x8c4;
    case FlagRule::aam:
    case FlagRule::aad:
      return 0x811;
    default:
      return 0;
  }
}

std::uint32_t value_at(const std::map<std::uint32_t, std::uint8_t>& memory, std::uint32_t linear,
                       unsigned size) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < size; ++i) {
    const auto found = memory.find((linear + i) & 0xffffff);
    if (found != memory.end()) value |= static_cast<std::uint32_t>(found->second) << (8 * i);
  }
  return value;
}

// The engine's part is played by the silicon's own final state with every undefined flag inverted:
// the rules must bring each of them back.
TEST(UndefinedFlags, BringBackWhatA80286LeftInEveryRecordedTest) {
  const std::vector<std::string> files = test::suite_files();
  if (files.empty()) GTEST_SKIP() << "no single-step suite (set CITCAT_SHARED)";
  std::uint64_t compared = 0, flags = 0;
  for (const std::string& path : files) {
    const MooFile file = read_moo(path);
    std::uint64_t wrong = 0;
    for (const MooTest& one : file.tests) {
      if (one.exception) continue;
      const DecodedInstruction info =
          decode_instruction(one.bytes, CodeMode{false, true}, CpuModel::i286);
      if (info.state != DecodeState::ok || !has_flag_rule(info, CpuModel::i286)) continue;
      const Registers16 before = test::registers_before(one), after = test::registers_after(one);
      FlagInputs inputs;
      inputs.eflags = before.flags;
      for (std::size_t i = 0; i < 8; ++i) inputs.gpr[i] = static_cast<std::uint32_t>(before.gpr[i]);
      std::uint32_t memory = 0;
      if (info.operand_count > 0) {
        const std::uint32_t linear =
            operand_linear(info.operands[0], before.gpr.data(), before.bases.data(), false).low32();
        inputs.memory = value_at(test::memory_before(one), linear, info.operands[0].size);
        memory = value_at(test::memory_after(one), linear, info.operands[0].size);
      }
      const unsigned count = info.opcode <= 0xc1   ? info.immediate & 31
                             : info.opcode <= 0xd1 ? 1
                                                   : inputs.gpr[kEcx] & 31;
      const std::uint32_t undefined = undefined_mask(info, count);
      const std::uint32_t engine = after.flags ^ undefined;
      const std::uint32_t fixed =
          fixed_flags(info, CpuModel::i286, inputs, engine, after.gpr.data(), memory);
      ++compared;
      flags += static_cast<std::uint64_t>(__builtin_popcount(undefined));
      if (((fixed ^ after.flags) & kArithmetic) != 0 && ++wrong <= 3) {
        ADD_FAILURE() << path << " " << one.index << " " << one.name << ": flags " << std::hex
                      << fixed << ", silicon " << after.flags << ", before " << before.flags;
      }
    }
  }
  std::printf("%llu tests, %llu undefined flags brought back\n",
              static_cast<unsigned long long>(compared), static_cast<unsigned long long>(flags));
  EXPECT_GT(compared, 1000u);
}

DecodedInstruction decode_plain(std::initializer_list<std::uint8_t> bytes) {
  return decode_instruction(std::span(bytes.begin(), bytes.size()), CodeMode{true, false},
                            CpuModel::p6);
}

TEST(UndefinedFlags, BitTestsChangeOnlyTheCarryFromThe386On) {
  FlagInputs before;
  before.eflags = 0x8d4;
  const std::array<std::uint64_t, 8> gpr{};
  EXPECT_EQ(
      fixed_flags(decode_plain({0x0f, 0xa3, 0xc8}), CpuModel::p6, before, 0x203, gpr.data(), 0),
      0xad7u);
}

TEST(UndefinedFlags, BitScansLeaveTheParityOfTheirResultOrNothingButZero) {
  FlagInputs before;
  before.eflags = 0x8d5;
  std::array<std::uint64_t, 8> gpr{};
  const DecodedInstruction scan = decode_plain({0x0f, 0xbc, 0xc8});  // BSF ECX, EAX
  gpr[kEcx] = 3;
  EXPECT_EQ(fixed_flags(scan, CpuModel::i486, before, 0x202, gpr.data(), 0), 0x206u);
  gpr[kEcx] = 4;
  EXPECT_EQ(fixed_flags(scan, CpuModel::i486, before, 0x206, gpr.data(), 0), 0x202u);
  before.eflags = 0x811;
  EXPECT_EQ(fixed_flags(scan, CpuModel::i486, before, 0x246, gpr.data(), 0), 0xa53u);
}

TEST(UndefinedFlags, ProcessorsWithoutEvidenceKeepTheEnginesFlags) {
  const DecodedInstruction shift =
      decode_instruction(std::array<std::uint8_t, 2>{0xd1, 0xe8}, CodeMode{}, CpuModel::i8088);
  EXPECT_FALSE(has_flag_rule(shift, CpuModel::i8088));
  EXPECT_FALSE(has_flag_rule(decode_plain({0xc1, 0xe8, 4}), CpuModel::p6));
  EXPECT_TRUE(has_flag_rule(decode_plain({0x0f, 0xbc, 0xc8}), CpuModel::unknown));
}

}  // namespace
}  // namespace citcat
