#include "replay/diagnose/value_lineage.h"

#include <gtest/gtest.h>

#include <vector>

namespace citcat {
namespace {

constexpr std::uint32_t bit(unsigned r) { return 1u << r; }
constexpr std::uint32_t segment(SegmentRegister s) {
  return bit(static_cast<unsigned>(InstructionFlow::kSegments) + static_cast<unsigned>(s));
}
constexpr std::uint32_t kStack = bit(kEsp) | segment(kSs);

InstructionFlow flow32(std::vector<std::uint8_t> code) { return instruction_flow(code, 32); }

TEST(InstructionFlow, HasTheRegistersOf64BitMode) {
  // add r9, [rbx + r12 * 8]
  const InstructionFlow add =
      instruction_flow(std::vector<std::uint8_t>{0x4e, 0x03, 0x0c, 0xe3}, 64);
  const auto bit = [](unsigned r) { return 1u << r; };
  constexpr unsigned kR9 = InstructionFlow::kExtended + 1, kR12 = InstructionFlow::kExtended + 4;
  EXPECT_EQ(add.values & ~bit(InstructionFlow::kFlags), bit(kR9));
  EXPECT_EQ(add.addresses & (bit(kEbx) | bit(kR12)), bit(kEbx) | bit(kR12));
  EXPECT_EQ(add.written, bit(kR9) | bit(InstructionFlow::kFlags));
  // A write of 32 bits leaves nothing of what was there: mov r8d, esi
  const InstructionFlow mov = instruction_flow(std::vector<std::uint8_t>{0x41, 0x89, 0xf0}, 64);
  EXPECT_EQ(mov.values, bit(kEsi));
  EXPECT_EQ(mov.written, bit(InstructionFlow::kExtended));
  EXPECT_EQ(flow_register_name(kR12, true), "r12");
  EXPECT_EQ(flow_register_name(kEsp, true), "rsp");
  EXPECT_EQ(flow_register_name(InstructionFlow::kFlags, true), "rflags");
  EXPECT_EQ(flow_register_name(InstructionFlow::kSegments, true), "es");
}

TEST(InstructionFlow, TellsValuesFromAddresses) {
  // mov eax,[ebx+esi*4]
  const InstructionFlow load = flow32({0x8b, 0x04, 0xb3});
  EXPECT_EQ(load.values, 0U);
  EXPECT_EQ(load.addresses, bit(kEbx) | bit(kEsi) | segment(kDs));
  EXPECT_EQ(load.written, bit(kEax));
  // push ecx: what is stored is ECX, where is ESP.
  const InstructionFlow push = flow32({0x51});
  EXPECT_EQ(push.values, bit(kEcx));
  EXPECT_EQ(push.addresses, kStack);
  EXPECT_EQ(push.written, bit(kEsp));
}

TEST(InstructionFlow, KnowsThatPartOfARegisterLeavesTheRest) {
  // mov al,5 and mov eax,5
  EXPECT_EQ(flow32({0xb0, 0x05}).values, bit(kEax));
  EXPECT_EQ(flow32({0xb8, 5, 0, 0, 0}).values, 0U);
}

TEST(InstructionFlow, KnowsThatXorWithItselfDependsOnNothing) {
  EXPECT_EQ(flow32({0x31, 0xc0}).values, 0U);
  EXPECT_EQ(flow32({0x31, 0xc8}).values, bit(kEax) | bit(kEcx));
}

TEST(InstructionFlow, FollowsFlags) {
  EXPECT_EQ(flow32({0x74, 0x05}).values, bit(InstructionFlow::kFlags));        // jz
  EXPECT_NE(flow32({0x39, 0xc8}).written & bit(InstructionFlow::kFlags), 0U);  // cmp eax,ecx
}

TEST(InstructionFlow, TakesTheOtherSizeWhereOnlyThatHasTheLength) {
  // mov ax,1234h is three bytes in 16-bit code only.
  const InstructionFlow flow = instruction_flow(std::vector<std::uint8_t>{0xb8, 0x34, 0x12}, 32);
  EXPECT_EQ(flow.written, bit(kEax));
}

}  // namespace
}  // namespace citcat
