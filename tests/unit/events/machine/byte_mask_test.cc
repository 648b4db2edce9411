#include "events/machine/byte_mask.h"

#include <gtest/gtest.h>

#include <bitset>
#include <random>

namespace citcat {
namespace {

TEST(ByteMask, DoesWithRangesWhatABitsetDoesBitByBit) {
  constexpr std::uint32_t kSeed = 64;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 200; ++round) {
    ByteMask mask;
    std::bitset<kPageSize> bits;
    for (int i = 0; i < 60; ++i) {
      const std::size_t first = random() % kPageSize;
      const std::size_t size = std::min<std::size_t>(random() % 300, kPageSize - first);
      bool changed = false, all = true;
      std::uint32_t low = 0;
      for (std::size_t b = first; b < first + size; ++b) {
        changed |= !bits[b];
        all &= bits[b];
        if (b < first + 32 && bits[b]) low |= 1u << (b - first);
      }
      ASSERT_EQ(mask.all(first, size), all);
      ASSERT_EQ(mask.bits(first, std::min<std::size_t>(size, 32)), low);
      if (random() % 4 == 0) {
        mask.reset(first);
        bits.reset(first);
        continue;
      }
      ASSERT_EQ(mask.set(first, size), changed);
      for (std::size_t b = first; b < first + size; ++b) bits.set(b);
    }
    for (std::size_t b = 0; b < kPageSize; ++b) ASSERT_EQ(mask[b], bits[b]);
    EXPECT_EQ(mask.count(), bits.count());
    EXPECT_EQ(mask.none(), bits.none());
  }
}

TEST(ByteMask, IsWholeWhenEveryByteIsSet) {
  ByteMask mask;
  EXPECT_TRUE(mask.none());
  mask.set(0, kPageSize - 1);
  EXPECT_FALSE(mask.all());
  mask.set(kPageSize - 1);
  EXPECT_TRUE(mask.all());
  ByteMask other;
  other.set();
  EXPECT_TRUE(mask == other);
}

}  // namespace
}  // namespace citcat
