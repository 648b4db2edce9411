#include "events/machine/stand_ins.h"

#include <gtest/gtest.h>

#include "events/recording.h"

namespace citcat {
namespace {

constexpr std::uint64_t kBeyond = 0x140023000;

TEST(StandIns, SayWhereAPageIsHeldAndWhatIsThere) {
  StandIns stand_ins;
  EXPECT_EQ(stand_ins.held(MachineAddr{0xc0023123}), PhysAddr{0xc0023123});
  EXPECT_EQ(stand_ins.add(PhysAddr{0xc0023000}, MachineAddr{kBeyond}), "");
  EXPECT_EQ(stand_ins.held(MachineAddr{kBeyond + 0x123}), PhysAddr{0xc0023123});
  EXPECT_EQ(stand_ins.machine(PhysAddr{0xc0023123}), MachineAddr{kBeyond + 0x123});
  EXPECT_TRUE(stand_ins.is_stand_in(PhysAddr{0xc0023fff}));
  EXPECT_EQ(stand_ins.machine(PhysAddr{0xc0024000}), MachineAddr{0xc0024000});
  EXPECT_FALSE(stand_ins.held(MachineAddr{kBeyond + 0x1000})) << "nothing was said of it";
  EXPECT_FALSE(stand_ins.held(MachineAddr{0xc0023000})) << "something else is there";
  EXPECT_EQ(stand_ins.add(PhysAddr{0xc0023000}, MachineAddr{kBeyond}), "") << "again";
  EXPECT_EQ(stand_ins.pages().size(), 1u);
}

TEST(StandIns, BelongToOnePageEach) {
  StandIns stand_ins;
  ASSERT_EQ(stand_ins.add(PhysAddr{0xc0023000}, MachineAddr{kBeyond}), "");
  EXPECT_EQ(stand_ins.add(PhysAddr{0xc0023000}, MachineAddr{0x240023000}),
            "address: c0023000 stands for 140023000 already, found it for 240023000");
  EXPECT_EQ(stand_ins.add(PhysAddr{0xd0023000}, MachineAddr{kBeyond}),
            "data: 140023000 is at c0023000 already, found it at d0023000");
  EXPECT_EQ(stand_ins.pages().size(), 1u);
}

TEST(StandIns, ArePagesBelow4GiBOfOnesBeyondWithTheSameLowerBits) {
  StandIns stand_ins;
  for (const auto& [held, machine] :
       {std::pair<std::uint64_t, std::uint64_t>{0xc0023000, 0xc1023000},
        {0xc0023000, 0x140024000},
        {0xc0023000, 0x141023000 ^ 0x800000},
        {0xc0023008, 0x140023008},
        {0x1c0023000, 0x140023000},
        {0xc0023000, 0x100000c0023000}}) {
    EXPECT_NE(stand_ins.add(PhysAddr{held}, MachineAddr{machine}), "") << held << ' ' << machine;
  }
  EXPECT_TRUE(stand_ins.pages().empty());
  EXPECT_EQ(stand_ins.add(PhysAddr{0xc0023000}, MachineAddr{0xfffff023000}), "");
}

TEST(StandIns, AreNotThereOnABusThatShowsNone) {
  BusModel bus;
  EXPECT_EQ(bus.held(MachineAddr{0xfffff123}), PhysAddr{0xfffff123});
  EXPECT_FALSE(bus.held(MachineAddr{kBeyond}));
  EXPECT_EQ(bus.machine(PhysAddr{0x123}), MachineAddr{0x123});
}

}  // namespace
}  // namespace citcat
