#include "replay/machine/block_template.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace citcat {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// For a comparison of 32-bit code.
BlockCompiler compiler_of_a_comparison(bool stores_apart) {
  return {{0x1000, 0, 0, 0}, CpuModel::i486, true, 0x3f, Detail::comparison, stores_apart};
}

/// The template of these instructions.
BlockTemplate compile(std::initializer_list<Bytes> instructions, bool stores_apart = false) {
  BlockCompiler compiler = compiler_of_a_comparison(stores_apart);
  for (const Bytes& bytes : instructions) {
    EXPECT_TRUE(compiler.add(decode_instruction(bytes, CodeMode{true, false}, CpuModel::i486)));
  }
  return compiler.finish(BlockTemplate::kNoFrame, true);
}

const Bytes kShlEaxCl{0xd3, 0xe0}, kAddEdx1{0x83, 0xc2, 0x01}, kIncEcx{0x41};

// Intel SDM vol. 2, SHL: OF only for counts of 1, AF for none but 0 is left without a meaning.
TEST(BlockTemplate, TellsFlagsOfAShiftByClFromItsCount) {
  const BlockTemplate block = compile({kShlEaxCl});
  EXPECT_EQ(block.flag_effect(0).written, 0u);
  EXPECT_EQ(block.flag_effect(1).undefined, kAf);
  EXPECT_EQ(block.flag_effect(2).undefined, kAf | kOf);
  EXPECT_EQ(block.flag_effect(0x20).written, 0u);
}

TEST(BlockTemplate, ForgetsTheCountWhereAllFlagsAreSetAfter) {
  const BlockTemplate block = compile({kShlEaxCl, kAddEdx1, kIncEcx});
  EXPECT_EQ(block.count(), 3u);
  EXPECT_EQ(block.flag_effect(2).written, kArithmeticFlags);
  EXPECT_EQ(block.flag_effect(2).undefined, 0u);
}

TEST(BlockTemplate, EndsBeforeTheCountOfAShiftIsLost) {
  const BlockTemplate block = compile({kShlEaxCl, kIncEcx, kAddEdx1});
  EXPECT_EQ(block.count(), 1u);
  ASSERT_NE(block.next, nullptr);
  EXPECT_EQ(block.whole_count, 3u);
}

TEST(BlockTemplate, LeavesAShiftOfTheCountItselfToAReport) {
  BlockCompiler compiler = compiler_of_a_comparison(false);
  const Bytes shl_ecx_cl{0xd3, 0xe1}, shl_ch_cl{0xd2, 0xe5};
  const CodeMode mode{true, false};
  EXPECT_FALSE(compiler.add(decode_instruction(shl_ecx_cl, mode, CpuModel::i486)));
  EXPECT_FALSE(compiler.add(decode_instruction(shl_ch_cl, mode, CpuModel::i486)));
}

TEST(BlockTemplate, EndsBeforeAByteIsStoredOnceMoreWhereEachStoreIsToBeTold) {
  const Bytes store_dword{0x89, 0x43, 0x04}, store_next{0x89, 0x43, 0x08},
      store_its_last_byte{0x88, 0x43, 0x07};  // mov [ebx+4], eax; [ebx+8], eax; [ebx+7], al
  const BlockTemplate block = compile({store_dword, store_next, store_its_last_byte}, true);
  EXPECT_EQ(block.count(), 2u);
  ASSERT_NE(block.next, nullptr);
  EXPECT_EQ(block.whole_count, 3u);
  EXPECT_EQ(compile({store_dword, store_next, store_its_last_byte}).count(), 3u);
  const Bytes push_eax{0x50}, pop_edx{0x5a};
  EXPECT_EQ(compile({push_eax, push_eax, push_eax}, true).count(), 3u);
  EXPECT_EQ(compile({push_eax, pop_edx, push_eax}, true).count(), 2u);
}

TEST(BlockTemplate, LeavesToReportsWhatComesAfterManyParts) {
  BlockCompiler compiler = compiler_of_a_comparison(true);
  const Bytes add_eax_al{0x00, 0x00};  // add [eax], al: what memory that was cleared means as code
  const DecodedInstruction info =
      decode_instruction(add_eax_al, CodeMode{true, false}, CpuModel::i486);
  for (int i = 0; i < 500; ++i) EXPECT_TRUE(compiler.add(info));
  const BlockTemplate block = compiler.finish(BlockTemplate::kNoFrame, true);
  EXPECT_EQ(block.count(), 1u);
  EXPECT_LT(block.whole_count, 100u);
  EXPECT_TRUE(block.last().reported_tail);
}

TEST(BlockTemplate, FindsInstructionsByWhereTheyBegin) {
  const BlockTemplate block = compile({kShlEaxCl, kAddEdx1, kIncEcx});
  EXPECT_EQ(block.index_of(0x1000), 0u);
  EXPECT_EQ(block.index_of(0x1002), 1u);
  EXPECT_EQ(block.index_of(0x1003), 3u);
  EXPECT_EQ(block.index_of(0x1005), 2u);
  EXPECT_EQ(block.index_of(0x1006), 3u);
}

}  // namespace
}  // namespace citcat
