// Results and flags worked out by hand from the microcode as it is published (the articles that
// x86/microcode_8086.h names), and undefined flags as single-step tests of an 8086 have
// them.

#include "x86/microcode_8086.h"

#include <gtest/gtest.h>

#include <vector>

#include "events/machine/cpu_state.h"

namespace citcat {
namespace {

constexpr std::uint32_t kAll = kArithmeticFlags;

DecodedInstruction decode_8086(const std::vector<std::uint8_t>& bytes) {
  const DecodedInstruction info = decode_instruction(bytes, CodeMode{false, true}, CpuModel::i8086);
  EXPECT_EQ(info.state, DecodeState::ok);
  EXPECT_TRUE(is_microcoded(info));
  return info;
}

MicrocodeResult run(const std::vector<std::uint8_t>& bytes, MicrocodeInput in) {
  const DecodedInstruction info = decode_8086(bytes);
  in.is_behind_repeat = is_behind_repeat(info);
  return run_microcode(info, in);
}

TEST(Microcode8086, AddsTheSignOfTheLowerHalfToTheUpperOneBehindImul) {
  // -128 * 1: FF + 1 is 0, with a carry out of bit 3.
  MicrocodeResult out = run({0xf6, 0xeb}, {.ax = 0x80, .operand = 1});
  EXPECT_EQ(out.ax, 0xff80);
  EXPECT_EQ(out.flags & kAll, kZf | kPf | kAf);
  // 64 * 2: 00 + 1, so that the product does not fit.
  out = run({0xf6, 0xeb}, {.ax = 0x40, .operand = 2});
  EXPECT_EQ(out.ax, 0x0080);
  EXPECT_EQ(out.flags & kAll, kCf | kOf);
  out = run({0xf7, 0xeb}, {.ax = 0xffff, .dx = 0x1234, .operand = 2});
  EXPECT_EQ(out.dx, 0xffff);
  EXPECT_EQ(out.ax, 0xfffe);
  EXPECT_EQ(out.flags & kAll, kZf | kPf | kAf);
}

TEST(Microcode8086, PassesTheUpperHalfThroughBehindMul) {
  const MicrocodeResult out = run({0xf6, 0xe3}, {.ax = 0xff, .operand = 0xff, .flags = kAll});
  EXPECT_EQ(out.ax, 0xfe01);
  EXPECT_EQ(out.flags & kAll, kSf | kCf | kOf);
}

TEST(Microcode8086, GivesProductsAndQuotientsTheOtherSignBehindRep) {
  EXPECT_EQ(run({0xf3, 0xf6, 0xe3}, {.ax = 3, .operand = 5}).ax, 0xfff1);
  const MicrocodeResult wide = run({0xf2, 0xf7, 0xeb}, {.ax = 3, .operand = 0xfffb});
  EXPECT_EQ(wide.ax, 15);
  EXPECT_EQ(wide.dx, 0);
  EXPECT_EQ(run({0xf3, 0xf6, 0xfb}, {.ax = 7, .operand = 2}).ax, 0x01fd);
  EXPECT_EQ(run({0xf3, 0xf6, 0xf3}, {.ax = 7, .operand = 2}).ax, 0x0103);  // DIV has no sign
}

TEST(Microcode8086, DividesAsTheArticleDoes) {
  MicrocodeResult out = run({0xf7, 0xf3}, {.ax = 0xff00, .dx = 0x0f00, .operand = 0x0ffc});
  EXPECT_EQ(out.ax, 0xf04c);
  EXPECT_EQ(out.dx, 0x0030);
  out = run({0xf6, 0xf3}, {.ax = 0x2345, .operand = 0x34});
  EXPECT_EQ(out.ax, 0x21ad);
  out = run({0xf7, 0xfb}, {.ax = 0xffe5, .dx = 0xffff, .operand = 7});
  EXPECT_EQ(out.ax, 0xfffd);
  EXPECT_EQ(out.dx, 0xfffa);
  EXPECT_EQ(out.flags & (kCf | kOf), 0u);
}

TEST(Microcode8086, RefusesQuotientsOfTooManyBits) {
  for (const auto& in : {MicrocodeInput{.ax = 0xff80, .operand = 1},     // -128
                         MicrocodeInput{.ax = 0x0080, .operand = 1}}) {  // 128
    const MicrocodeResult out = run({0xf6, 0xfb}, in);
    EXPECT_TRUE(out.divide_error);
    EXPECT_EQ(out.flags & kCf, 0u);
  }
  // 100h / 1: 01 - 01 leaves 0.
  const MicrocodeResult out = run({0xf6, 0xf3}, {.ax = 0x100, .operand = 1, .flags = kCf});
  EXPECT_TRUE(out.divide_error);
  EXPECT_EQ(out.flags & kAll, kZf | kPf);
  EXPECT_FALSE(run({0xf6, 0xfb}, {.ax = 0xff81, .operand = 1}).divide_error);  // -127
}

TEST(Microcode8086, AamByZeroLeavesTheFlagsOfNothing) {
  const MicrocodeResult out = run({0xd4, 0x00}, {.ax = 0x1234, .flags = kAll});
  EXPECT_TRUE(out.divide_error);
  EXPECT_EQ(out.flags & kAll, kZf | kPf);
  const MicrocodeResult ten = run({0xd4, 0x0a}, {.ax = 0x1263, .flags = kAll});
  EXPECT_EQ(ten.ax, 0x0909);
  EXPECT_EQ(ten.flags & kAll, kPf);
}

TEST(Microcode8086, AadAddsWithAllFlags) {
  const MicrocodeResult out = run({0xd5, 0x0a}, {.ax = 0x08c0});
  EXPECT_EQ(out.ax, 0x0010);
  EXPECT_EQ(out.flags & kAll, kCf);
}

TEST(Microcode8086, LooksAtTheUpperDigitOtherwiseBehindAHalfCarry) {
  EXPECT_EQ(run({0x27}, {.ax = 0x9a}).ax, 0x00);  // 9A + 66
  const MicrocodeResult half = run({0x27}, {.ax = 0x9a, .flags = kAf});
  EXPECT_EQ(half.ax, 0xa0);  // 9A + 6
  EXPECT_EQ(half.flags & kAll, kAf | kSf | kPf);
  EXPECT_EQ(run({0x27}, {.ax = 0xa0, .flags = kAf}).ax, 0x06);
  EXPECT_EQ(run({0x2f}, {.ax = 0x9f, .flags = kAf}).ax, 0x99);
}

TEST(Microcode8086, ShowsTheSumBeforeItsDigitIsCutOff) {
  const MicrocodeResult out = run({0x37}, {.ax = 0x027a});
  EXPECT_EQ(out.ax, 0x0300);
  EXPECT_EQ(out.flags & kAll, kAf | kCf | kSf | kOf);
  const MicrocodeResult borrow = run({0x3f}, {.ax = 0x0005, .flags = kAf});
  EXPECT_EQ(borrow.ax, 0xff0f);
  EXPECT_EQ(borrow.flags & kAll, kAf | kCf | kSf | kPf);
}

TEST(Microcode8086, ShiftsStepByStepWhateverTheCount) {
  MicrocodeResult out = run({0xd3, 0xe0}, {.cl = 33, .operand = 0xffff, .flags = kAll});
  EXPECT_EQ(out.operand, 0);
  EXPECT_EQ(out.flags & kAll, kZf | kPf);
  out = run({0xd2, 0xd0}, {.cl = 255, .operand = 0x01});  // RCL of nine bits
  EXPECT_EQ(out.operand, 0x08);
  out = run({0xd0, 0xe0}, {.operand = 0x48});
  EXPECT_EQ(out.operand, 0x90);
  EXPECT_EQ(out.flags & kAll, kSf | kPf | kAf | kOf);
  out = run({0xd2, 0xe8}, {.cl = 0, .operand = 0x48, .flags = kAll});
  EXPECT_EQ(out.operand, 0x48);
  EXPECT_EQ(out.flags & kAll, kAll);
}

TEST(Microcode8086, SetsAllBitsUnlessTheCountIsZero) {
  MicrocodeResult out = run({0xd1, 0xf0}, {.operand = 0x1234, .flags = kAll});
  EXPECT_EQ(out.operand, 0xffff);
  EXPECT_EQ(out.flags & kAll, kSf | kPf);
  out = run({0xd2, 0xf0}, {.cl = 0, .operand = 0x12, .flags = kCf});
  EXPECT_EQ(out.operand, 0x12);
  EXPECT_EQ(out.flags & kAll, kCf);
}

}  // namespace
}  // namespace citcat
