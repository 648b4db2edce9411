#include "events/machine/code_fetch.h"

#include <gtest/gtest.h>

#include <random>

namespace citcat {
namespace {

constexpr std::uint32_t kAllLines = 0xfffff;

/// Whatever lines are missing, the address after the last byte of a fetch is one at which the next
/// may begin; the same a bit further on is not, as far as lines show it.
TEST(CodeFetch, GoesOnWhateverLinesAreMissing) {
  std::mt19937 generator(8086);
  const auto random = [&] { return static_cast<std::uint32_t>(generator()); };
  for (int i = 0; i < 200'000; ++i) {
    const std::uint32_t mask = kAllLines & (random() | 0xff);
    // Often below a page of 2^8 to 2^20 bytes, where carries are.
    const unsigned ones = random() % 21;
    const std::uint32_t last = (random() & kAllLines) | ((1u << ones) - 1);
    const std::uint32_t next = (last + 1) & kAllLines;
    const PhysAddr ended = PhysAddr{last & mask}.plus32(1).masked32(mask);
    ASSERT_TRUE(goes_on_fetching(ended, PhysAddr{next & mask}, mask))
        << std::hex << last << " with lines " << mask;
    ASSERT_FALSE(goes_on_fetching(ended, PhysAddr{(next & mask) ^ 1}, mask))
        << std::hex << last << " with lines " << mask;
  }
}

TEST(CodeFetch, DoesNotGoOnWhereALineThatWasCapturedStopsTheCarry) {
  constexpr std::uint32_t kWithoutA8AndA10 = kAllLines & ~0x500u;
  const PhysAddr wrapped{0};  // A0 to A7 have wrapped, A9 was low
  EXPECT_TRUE(goes_on_fetching(wrapped, PhysAddr{0x200}, kWithoutA8AndA10));
  EXPECT_FALSE(goes_on_fetching(wrapped, PhysAddr{0x800}, kWithoutA8AndA10));
  EXPECT_FALSE(goes_on_fetching(PhysAddr{0x40}, PhysAddr{0x240}, kWithoutA8AndA10));
}

}  // namespace
}  // namespace citcat
