// Arithmetic of addresses.
#include "events/machine/address.h"

#include <gtest/gtest.h>

#include <type_traits>

#include "formats/io/error.h"

namespace citcat {
namespace {

static_assert(!std::is_convertible_v<PhysAddr, LinearAddr>);
static_assert(!std::is_convertible_v<std::uint32_t, PhysAddr>);

TEST(Address, GoesOnFromTheLastOf32BitsToTheFirst) {
  EXPECT_EQ(PhysAddr{0xffffffff}.plus32(1), PhysAddr{0});
  EXPECT_EQ(LinearAddr{0xfffffff0}.plus32(0x20), LinearAddr{0x10});
  EXPECT_EQ(LinearAddr{5}.plus32(0u - 6), LinearAddr{0xffffffff});
}

TEST(Address, CountsFromABaseAboveItThroughTheLast) {
  EXPECT_EQ(PhysAddr{2}.minus32(PhysAddr{0xfffffffe}), 4u);
  EXPECT_TRUE(PhysAddr{2}.is_within32(PhysAddr{0xfffffffe}, 5));
  EXPECT_FALSE(PhysAddr{2}.is_within32(PhysAddr{0xfffffffe}, 4));
  EXPECT_FALSE(PhysAddr{0xfffffffd}.is_within32(PhysAddr{0xfffffffe}, 16));
}

TEST(Address, OverlapsARangeThatGoesOnToTheFirst) {
  EXPECT_TRUE(overlap(PhysAddr{0xfffffffe}, 4, PhysAddr{1}, 1));
  EXPECT_TRUE(overlap(PhysAddr{1}, 1, PhysAddr{0xfffffffe}, 4));
  EXPECT_FALSE(overlap(PhysAddr{0xfffffffe}, 4, PhysAddr{2}, 1));
}

TEST(Address, KeepsWhatLiesAboveABlockWhenItIsAligned) {
  constexpr std::uint64_t kHigh = 0x12345'6789a'bcdeULL;
  EXPECT_EQ(LinearAddr{kHigh}.page_begin().value, kHigh & ~0xfffULL);
  EXPECT_EQ(LinearAddr{kHigh}.page(), kHigh >> 12);
  EXPECT_EQ(LinearAddr{kHigh}.begin_of(32).value + LinearAddr{kHigh}.offset_in(32), kHigh);
}

TEST(Address, HasNoFieldOf32BitsWhenItIsWider) {
  EXPECT_EQ(PhysAddr{0xffffffff}.u32(), 0xffffffffu);
  EXPECT_THROW(PhysAddr{0x100000000}.u32(), InternalError);
}

}  // namespace
}  // namespace citcat
