#include "replay/verify/lone_change.h"

#include <gtest/gtest.h>

#include <vector>

namespace citcat::test {
namespace {

ExternalWrite write_at(std::uint32_t address, std::vector<std::uint8_t> data) {
  ExternalWrite w;
  w.address = PhysAddr{address};
  w.data = std::move(data);
  return w;
}

TEST(LoneChanges, StandAloneWhereNothingElseInThePageFrameChanges) {
  const ExternalWrites writes = {write_at(0x5010, {1}), write_at(0x6000, {1, 2, 3, 4}),
                                 write_at(0x6004, {1, 2, 3, 4})};
  LoneChanges changes(writes);
  EXPECT_TRUE(changes.stands_alone(PhysAddr{0x5010}));
  EXPECT_FALSE(changes.stands_alone(PhysAddr{0x6000}));
  EXPECT_FALSE(changes.stands_alone(PhysAddr{0x6004}));
}

TEST(LoneChanges, StandAloneWhereTheSameDwordChangesBack) {
  const ExternalWrites writes = {write_at(0x5011, {1}), write_at(0x5011, {0})};
  EXPECT_TRUE(LoneChanges(writes).stands_alone(PhysAddr{0x5011}));
}

TEST(LoneChanges, DoNotStandAloneInATransferOfSeveralDwords) {
  const ExternalWrites writes = {write_at(0x5010, {1, 2, 3, 4, 5, 6, 7, 8}), write_at(0x5010, {9})};
  EXPECT_FALSE(LoneChanges(writes).stands_alone(PhysAddr{0x5010}));
}

TEST(LoneChanges, AreNoMisreadsWhereAddressesBelongToDevices) {
  for (const std::uint32_t address : {0xb8000u, 0xdffffu, 0x80000000u, 0xfebc0004u}) {
    const ExternalWrites writes = {write_at(address, {1})};
    EXPECT_FALSE(LoneChanges(writes).stands_alone(PhysAddr{address})) << std::hex << address;
    EXPECT_FALSE(LoneChanges(writes).is_memory(PhysAddr{address})) << std::hex << address;
  }
}

TEST(LoneChanges, AreNoMisreadsWhereThereIsNoRam) {
  const ExternalWrites writes = {write_at(0x5010, {1}), write_at(0x4001000, {1})};
  LoneChanges changes(writes, 0x1000000);
  EXPECT_TRUE(changes.stands_alone(PhysAddr{0x5010}));
  EXPECT_FALSE(changes.stands_alone(PhysAddr{0x4001000}));
  EXPECT_TRUE(LoneChanges(writes, 0x8000000).stands_alone(PhysAddr{0x4001000}));
  const ExternalWrites rom = {write_at(0xf0000, {1})};
  EXPECT_TRUE(LoneChanges(rom, 0x80000).stands_alone(PhysAddr{0xf0000}));
}

}  // namespace
}  // namespace citcat::test
