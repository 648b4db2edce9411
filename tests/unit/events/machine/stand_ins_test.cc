#include "events/machine/stand_ins.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace citcat {
namespace {

constexpr std::uint64_t kBeyond = 0x140023000;

TEST(StandIns, SayWhichPageIsMeant) {
  StandIns stand_ins;
  EXPECT_TRUE(stand_ins.empty());
  EXPECT_EQ(stand_ins.meant(PhysAddr{0xc0023123}), PhysAddr{0xc0023123});
  EXPECT_EQ(stand_ins.add(PhysAddr{0xc0023000}, PhysAddr{kBeyond}), "");
  EXPECT_EQ(stand_ins.meant(PhysAddr{0xc0023123}), PhysAddr{kBeyond + 0x123});
  EXPECT_EQ(stand_ins.meant(PhysAddr{0xc0024000}), PhysAddr{0xc0024000});
  EXPECT_EQ(stand_ins.meant(PhysAddr{kBeyond}), PhysAddr{kBeyond});
  EXPECT_EQ(stand_ins.add(PhysAddr{0xc0023000}, PhysAddr{kBeyond}), "") << "again";
}

TEST(StandIns, BelongToOnePageEach) {
  StandIns stand_ins;
  ASSERT_EQ(stand_ins.add(PhysAddr{0xc0023000}, PhysAddr{kBeyond}), "");
  EXPECT_EQ(stand_ins.add(PhysAddr{0xc0023000}, PhysAddr{0x240023000}),
            "address: c0023000 stands for 140023000 already, found it for 240023000");
  EXPECT_EQ(stand_ins.add(PhysAddr{0xd0023000}, PhysAddr{kBeyond}),
            "data: 140023000 is at c0023000 already, found it at d0023000");
}

TEST(StandIns, ArePagesBelow4GiBOfOnesBeyondWithTheSameLowerBits) {
  StandIns stand_ins;
  for (const auto& [shown, page] : {std::pair<std::uint64_t, std::uint64_t>{kBeyond, kBeyond},
                                    {0xc0023010, kBeyond},
                                    {0xc0023000, kBeyond + 0x10},
                                    {0xc0023000, 0xd0023000},
                                    {0xc0023000, 0x100000023000},
                                    {0xc0023000, 0x140024000}})
    EXPECT_NE(stand_ins.add(PhysAddr{shown}, PhysAddr{page}), "") << shown << ' ' << page;
  EXPECT_TRUE(stand_ins.empty());
  EXPECT_EQ(stand_ins.add(PhysAddr{0xc0023000}, PhysAddr{0xfffff023000}), "");
}

}  // namespace
}  // namespace citcat
