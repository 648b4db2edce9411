#include "events/derive/external_writes.h"

#include <gtest/gtest.h>

namespace citcat {
namespace {

/// Shown by read number `read`, last known to be old at read number `known`.
ExternalWrite event(std::uint32_t address, std::uint64_t read, std::uint64_t known) {
  ExternalWrite e;
  e.address = PhysAddr{address};
  e.data = {static_cast<std::uint8_t>(address), 0, 0, static_cast<std::uint8_t>(read)};
  e.position_known = true;
  e.position = {read * 3, 0};
  e.anchor.reads = read;
  e.window_begin.reads = known;
  return e;
}

TEST(MergeExternalWrites, JoinsABlockThatIsReadPieceByPiece) {
  const auto merged =
      merge_external_writes({event(0x1000, 50, 5), event(0x1004, 51, 6), event(0x1008, 60, 50)});
  ASSERT_EQ(merged.size(), 1U);
  EXPECT_EQ(merged[0].address.value, 0x1000U);
  EXPECT_EQ(merged[0].position.instruction, 150U);
  EXPECT_EQ(merged[0].data, (std::vector<std::uint8_t>{0, 0, 0, 50, 4, 0, 0, 51, 8, 0, 0, 60}));
}

TEST(MergeExternalWrites, KeepsApartWhatWasStillOldAfterTheFirst) {
  EXPECT_EQ(merge_external_writes({event(0x1000, 50, 5), event(0x1004, 60, 51)}).size(), 2U);
}

TEST(MergeExternalWrites, KeepsApartWhatDoesNotContinue) {
  EXPECT_EQ(merge_external_writes({event(0x1000, 50, 5), event(0x1008, 60, 6)}).size(), 2U);
  EXPECT_EQ(merge_external_writes({event(0x1004, 50, 5), event(0x1000, 60, 6)}).size(), 2U);
  EXPECT_TRUE(merge_external_writes({}).empty());
}

}  // namespace
}  // namespace citcat
