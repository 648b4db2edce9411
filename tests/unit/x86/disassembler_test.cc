#include "x86/disassembler.h"

#include <gtest/gtest.h>

#include <vector>

namespace citcat {
namespace {

std::string text(Disassembler& disassembler, std::vector<std::uint8_t> bytes,
                 std::uint32_t address = 0x1000) {
  return disassembler.text(bytes, address);
}

TEST(Disassembler, NamesBranchTargetsByAddress) {
  Disassembler code(32);
  EXPECT_EQ(text(code, {0xeb, 0xfe}), "jmp 0x00001000");
  EXPECT_EQ(text(code, {0x8b, 0x45, 0x08}), "mov eax, [ebp+0x08]");
}

/// Segments of 16-bit code begin anywhere: an offset in CS would not fit the address.
TEST(Disassembler, NamesBranchTargetsOf16BitCodeByLinearAddress) {
  Disassembler code(16);
  EXPECT_EQ(text(code, {0xe2, 0xfa}, 0x159ef), "loop 0x159EB");
  EXPECT_EQ(text(code, {0xe8, 0x00, 0x10}, 0xfe05b), "call 0xFF05E");
  EXPECT_EQ(text(code, {0x0f, 0x84, 0x00, 0x02}, 0x12345), "jz 0x12549");
  EXPECT_EQ(text(code, {0x74, 0xf0}, 0x4), "jz 0xFFF6") << "across the end of a segment at 0";
  EXPECT_EQ(text(code, {0xa1, 0x34, 0x12}, 0x159ef), "mov ax, [0x1234]") << "an offset in DS";
  EXPECT_EQ(text(code, {0xea, 0x5b, 0xe0, 0x00, 0xf0}, 0xffff0), "jmp far 0xF000:0xE05B");
}

TEST(Disassembler, FollowsTheSizeItIsTold) {
  Disassembler narrow(16), wide(32);
  EXPECT_EQ(text(narrow, {0xb8, 0x34, 0x12}), "mov ax, 0x1234");
  EXPECT_EQ(text(wide, {0xb8, 0x78, 0x56, 0x34, 0x12}), "mov eax, 0x12345678");
  EXPECT_EQ(text(wide, {0xb8, 0x34, 0x12}), "(bad)");
}

TEST(Disassembler, GuessesTheSizeFromLengths) {
  Disassembler guess(0);
  EXPECT_EQ(text(guess, {0x40}), "inc eax");
  EXPECT_EQ(text(guess, {0xb8, 0x34, 0x12}), "mov ax, 0x1234");
  EXPECT_EQ(text(guess, {0x40}), "inc ax") << "a length that fits one size only decides";
  EXPECT_EQ(text(guess, {0xb8, 0x78, 0x56, 0x34, 0x12}), "mov eax, 0x12345678");
}

TEST(Disassembler, SaysWhatIsNoInstruction) {
  Disassembler guess(0);
  EXPECT_EQ(text(guess, {0x0f, 0xff, 0xff, 0xff}), "(bad)");
  EXPECT_EQ(text(guess, {0x90, 0x90}), "(bad)");
}

}  // namespace
}  // namespace citcat
