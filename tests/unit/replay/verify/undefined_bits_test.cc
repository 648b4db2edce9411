// Bits that no manual tells, in flags and in memory.

#include "replay/verify/undefined_bits.h"

#include <gtest/gtest.h>

#include <array>

#include "replay/verify/flag_images.h"
#include "unit/replay/verify/bus_transactions.h"
#include "unit/replay/verify/idle_machine.h"

namespace citcat::test {
namespace {

constexpr std::uint32_t kCarryFlag = 1, kOverflowFlag = 0x800;

TEST(UndefinedBits, AnImageOfFlagsHasThoseThatAreUndefined) {
  UndefinedBits bits;
  bits.completed(FlagEffect{kOverflowFlag | kCarryFlag, kOverflowFlag});
  const std::array<std::uint8_t, 4> image{0x03, 0x02, 0, 0};
  EXPECT_EQ(bits.in_image(image, [] { return 0x0203u; }), kOverflowFlag);
  EXPECT_EQ(bits.in_image(std::span(image).first(1), [] { return 0x0203u; }), 0u);
  EXPECT_EQ(bits.in_image(std::span(image).first(2), [] { return 0xf0203u; }), kOverflowFlag);
}

TEST(UndefinedBits, AnotherValueThanTheFlagsIsNoImage) {
  UndefinedBits bits;
  bits.completed(FlagEffect{kOverflowFlag | kCarryFlag, kOverflowFlag});
  const std::array<std::uint8_t, 4> stored{0x03, 0x02, 0, 0};
  EXPECT_EQ(bits.in_image(stored, [] { return 0x0202u; }), 0u);
}

TEST(UndefinedBits, MayDifferWhereTheBitsAre) {
  IdleMachine machine;
  UndefinedBits bits;
  bits.stored(PhysAddr{0x1010}, {0x08, 0x10});
  EXPECT_TRUE(bits.may_differ(PhysAddr{0x1010}, 0x18, machine.memory()));
  EXPECT_FALSE(bits.may_differ(PhysAddr{0x1010}, 0x14, machine.memory()));
  EXPECT_FALSE(bits.may_differ(PhysAddr{0x1011}, 0x19, machine.memory()));
}

TEST(UndefinedBits, AStoreWithoutSuchBitsEndsThem) {
  UndefinedBits bits;
  bits.stored(PhysAddr{0x1010}, {0x08, 0x10});
  bits.stored(PhysAddr{0x1010}, {0, 0x10});
  EXPECT_TRUE(bits.empty());
}

TEST(UndefinedBits, ALineOnTheBusEndsThoseOfBytesThatItShows) {
  IdleMachine machine;
  UndefinedBits bits;
  bits.stored(PhysAddr{0x1010}, {0x08, 0x10});
  bits.stored(PhysAddr{0x1011}, {0x08, 0x11});
  bits.line_agreed(counted(BusOp::data_write, 0x1010, {0x10, 0x77}, 5), machine.memory());
  EXPECT_EQ(bits.find(PhysAddr{0x1010}), nullptr);
  EXPECT_NE(bits.find(PhysAddr{0x1011}), nullptr) << "memory holds something else by now";
}

TEST(UndefinedBits, AreCopiedByTheIterationThatReadThem) {
  UndefinedBits bits;
  bits.stored(PhysAddr{0x1011}, {0x08, 0x10});
  bits.copying(PhysAddr{0x1010}, {5, 2});
  EXPECT_EQ(bits.copied(0, {5, 2}), 0);
  EXPECT_EQ(bits.copied(1, {5, 2}), 0x08);
  EXPECT_EQ(bits.copied(1, {5, 3}), 0);
}

class FlagImagesTest : public testing::Test {
 protected:
  /// An image at 1010h that memory holds.
  FlagImagesTest() {
    machine_.store(0x1010, {0x02, 0x02, 0, 0});
    images_.stored(PhysAddr{0x1010}, {0x0202, kOverflowFlag});
  }
  bool explain(std::uint32_t address, std::uint8_t captured) {
    return images_.explain(PhysAddr{address}, captured, machine_.memory());
  }

  IdleMachine machine_;
  FlagImages images_;
};

TEST_F(FlagImagesTest, ExplainADifferenceInUndefinedFlags) {
  EXPECT_TRUE(explain(0x1011, 0x0a));
  EXPECT_FALSE(explain(0x1011, 0x06));
  EXPECT_FALSE(explain(0x1015, 0x0a));
}

TEST_F(FlagImagesTest, ExplainNothingOfWhatMemoryHoldsNoMore) {
  machine_.store(0x1012, {1});
  EXPECT_FALSE(explain(0x1011, 0x0a));
  images_.forget_lost(machine_.memory());
  EXPECT_TRUE(images_.empty());
}

TEST_F(FlagImagesTest, AStoreGivesBackTheImageThatItOverwrites) {
  const auto old = images_.stored(PhysAddr{0x1010}, {0x0202, 0});
  ASSERT_TRUE(old);
  EXPECT_EQ(old->undefined, kOverflowFlag);
  EXPECT_TRUE(images_.empty()) << "the new one has no such flags";
}

TEST_F(FlagImagesTest, AreCopied) {
  images_.copied(PhysAddr{0x100e}, PhysAddr{0x102e}, 8);
  machine_.store(0x1030, {0x02, 0x02, 0, 0});
  EXPECT_TRUE(explain(0x1031, 0x0a));
}

TEST_F(FlagImagesTest, EndWhenTheBusShowsThem) {
  images_.shown(PhysAddr{0x1000}, 32);
  EXPECT_TRUE(images_.empty());
}

}  // namespace
}  // namespace citcat::test
