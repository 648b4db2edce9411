// Which instructions are taken for ones that may store.

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "monitor/insn_class.h"

namespace citcat::monitor {
namespace {

using Bytes = std::vector<std::uint8_t>;

TEST(StoreClass, KnowsWhatStores) {
  for (const Bytes& bytes : std::initializer_list<Bytes>{
           {0x89, 0x03},              // MOV [EBX], EAX
           {0x66, 0x89, 0x03},        // the same of 16 bits
           {0x55},                    // PUSH EBP
           {0x6a, 0x01},              // PUSH 1
           {0xe8, 0, 0, 0, 0},        // CALL
           {0xff, 0x13},              // CALL [EBX]
           {0xff, 0xd3},              // CALL EBX
           {0xff, 0x33},              // PUSH [EBX]
           {0x01, 0x03},              // ADD [EBX], EAX
           {0x83, 0x03, 1},           // ADD [EBX], 1
           {0xf7, 0x1b},              // NEG [EBX]
           {0xd1, 0x23},              // SHL [EBX]
           {0x87, 0x03},              // XCHG [EBX], EAX
           {0xc7, 0x03, 0, 0, 0, 0},  // MOV [EBX], 0
           {0xa3, 0, 0, 0, 0},        // MOV [0], EAX
           {0x8f, 0x03},              // POP [EBX]
           {0x9c},                    // PUSHF
           {0xc8, 0, 0, 0},           // ENTER
           {0x8e, 0xd8},              // MOV DS, EAX: marks a descriptor
           {0x1f},                    // POP DS: the same
           {0xf0, 0x0f, 0xb1, 0x0b},  // LOCK CMPXCHG [EBX], ECX
           {0x0f, 0xab, 0x03},        // BTS [EBX], EAX
           {0x0f, 0x94, 0x03},        // SETE [EBX]
           {0x0f, 0x7f, 0x03},        // MOVQ [EBX], MM0
           {0x0f, 0x11, 0x03},        // MOVUPS [EBX], XMM0
           {0x0f, 0xe7, 0x03},        // MOVNTQ
           {0xd9, 0x1b},              // FSTP [EBX]
           {},                        // cut short
           {0x0f},
       })
    EXPECT_TRUE(classify(bytes, CodeSize::bits32).may_store) << bytes.size();
  EXPECT_TRUE(classify(Bytes{0x48, 0x89, 0x03}, CodeSize::bits64).may_store);
  EXPECT_TRUE(classify(Bytes{0x63, 0x03}, CodeSize::bits32).may_store) << "ARPL";
}

TEST(StoreClass, KnowsWhatOnlyReads) {
  for (const Bytes& bytes : std::initializer_list<Bytes>{{0x8b, 0x03},
                                                         {0x89, 0xc3},
                                                         {0x01, 0xc3},
                                                         {0x39, 0x03},
                                                         {0x83, 0x3b, 1},
                                                         {0x5d},
                                                         {0xc3},
                                                         {0x74, 0},
                                                         {0xeb, 0},
                                                         {0x8d, 0x03},
                                                         {0xf7, 0x03, 0, 0, 0, 0},
                                                         {0x0f, 0xb6, 0x03},
                                                         {0x0f, 0x84, 0, 0, 0, 0},
                                                         {0x0f, 0xaf, 0x03},
                                                         {0x90}})
    EXPECT_FALSE(classify(bytes, CodeSize::bits32).may_store) << +bytes[0];
  EXPECT_FALSE(classify(Bytes{0x48, 0x8b, 0x03}, CodeSize::bits64).may_store);
  EXPECT_FALSE(classify(Bytes{0x63, 0x03}, CodeSize::bits64).may_store) << "MOVSXD";
}

}  // namespace
}  // namespace citcat::monitor
