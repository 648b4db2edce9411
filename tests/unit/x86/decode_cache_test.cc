// What is remembered of instructions is what decoding them again would say.

#include "x86/decode_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace citcat {
namespace {

using CodeBytes = std::array<std::uint8_t, kMaxInstructionBytes>;

/// Beginnings that need more bytes or fewer by what follows: prefixes, ModRM, SIB, immediates.
CodeBytes random_bytes(std::mt19937_64& random) {
  static constexpr std::array<std::uint8_t, 24> kFirst = {
      0x66, 0x67, 0xf2, 0xf3, 0xf0, 0x64, 0x0f, 0x8b, 0x89, 0xc7, 0x81, 0x83,
      0xff, 0xe8, 0x74, 0x50, 0xb8, 0xa1, 0xc8, 0xea, 0xf6, 0xd9, 0x90, 0xc3};
  CodeBytes bytes{};
  for (std::uint8_t& b : bytes) {
    b = static_cast<std::uint8_t>(random() % 3 == 0 ? kFirst[random() % kFirst.size()]
                                                    : random() % 8);
  }
  bytes[0] = kFirst[random() % kFirst.size()];
  return bytes;
}

void expect_same(const DecodedInstruction& a, const DecodedInstruction& b) {
  ASSERT_EQ(a.state, b.state);
  ASSERT_EQ(a.reason, b.reason);
  if (a.state != DecodeState::ok) return;
  ASSERT_EQ(a.length, b.length);
  ASSERT_EQ(a.bytes, b.bytes);
  ASSERT_EQ(a.canonical, b.canonical);
  ASSERT_EQ(a.kind, b.kind);
  ASSERT_EQ(a.opcode, b.opcode);
  ASSERT_EQ(a.modrm, b.modrm);
  ASSERT_EQ(a.operand_bytes, b.operand_bytes);
  ASSERT_EQ(a.address_bits, b.address_bits);
  ASSERT_EQ(a.immediate, b.immediate);
  ASSERT_EQ(a.target_displacement, b.target_displacement);
  ASSERT_EQ(a.operand_count, b.operand_count);
  for (unsigned i = 0; i < a.operand_count; ++i) {
    ASSERT_EQ(a.operands[i].base, b.operands[i].base);
    ASSERT_EQ(a.operands[i].index, b.operands[i].index);
    ASSERT_EQ(a.operands[i].displacement, b.operands[i].displacement);
    ASSERT_EQ(a.operands[i].size, b.operands[i].size);
    ASSERT_EQ(a.operands[i].segment, b.operands[i].segment);
    ASSERT_EQ(a.operands[i].write, b.operands[i].write);
  }
}

TEST(DecodeCache, SaysWhatDecodingSaysInEveryModeAndUpToEveryEndOfAPage) {
  std::mt19937_64 random(1);
  for (const CpuModel model : {CpuModel::i386, CpuModel::p6}) {
    DecodeCache cache(model);
    std::vector<CodeBytes> seen;
    for (int i = 0; i < 200'000; ++i) {
      // Half of them begin like one before, and end otherwise.
      CodeBytes bytes = random_bytes(random);
      if (!seen.empty() && random() % 2 == 0) {
        const CodeBytes& old = seen[random() % seen.size()];
        std::copy_n(old.begin(), 1 + random() % bytes.size(), bytes.begin());
      }
      if (seen.size() < 2000) seen.push_back(bytes);
      const CodeMode mode{random() % 2 == 0, random() % 4 == 0};
      const std::span shown(bytes.data(), 1 + random() % bytes.size());
      SCOPED_TRACE(i);
      expect_same(cache.decode(shown, mode), decode_instruction(shown, mode, model));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace citcat
