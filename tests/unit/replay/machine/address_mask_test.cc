// Address masks that come with an initial state: bit 20 is the A20 gate's, the others say how many
// address pins there are. A port write that concerns no gate must leave both alone.

#include <gtest/gtest.h>

#include <string>

#include "events/machine/cpu_traits.h"
#include "replay/session/replayer.h"

namespace citcat {
namespace {

constexpr std::uint32_t kBit20 = 1u << 20;

struct MaskRow {
  CpuModel model;
  std::uint32_t mask;
  bool follows_gate;  ///< port 92h of this machine opens and closes it
};

// 24 address pins of the 80286, 26 of the 386EX, 32 of the others (their data sheets); 20 of the
// 8088. From the 486 on A20M# is a pin of the processor. Before, gates are behind the pins.
constexpr MaskRow kRows[] = {
    {CpuModel::i8088, 0x000fffff, false},  {CpuModel::i8088, 0xffffffff, false},
    {CpuModel::i286, 0x00ffffff, false},   {CpuModel::i286, 0xffffffff, false},
    {CpuModel::i286, 0x00efffff, true},    {CpuModel::i286, 0xffefffff, true},
    {CpuModel::i386, 0x03ffffff, false},   {CpuModel::i386, 0xffffffff, false},
    {CpuModel::i386, 0xffefffff, true},    {CpuModel::i486, 0xffffffff, true},
    {CpuModel::i486, 0xffefffff, true},    {CpuModel::pentium, 0xffffffff, true},
    {CpuModel::pentium, 0xffefffff, true}, {CpuModel::p6, 0xffffffff, true},
    {CpuModel::p6, 0xffefffff, true},
};

std::string row_name(const testing::TestParamInfo<MaskRow>& row) {
  return "Model" + std::to_string(static_cast<int>(row.param.model)) + "Mask" +
         std::to_string(row.index);
}

class AddressMask : public testing::TestWithParam<MaskRow> {
 protected:
  AddressMask() {
    CpuState& s = recording_.initial;
    s.model = GetParam().model;
    s.a20_mask = GetParam().mask;
    set_register(s, "cs", 0x1000);
    set_register(s, "ds", 0xffff);
    put(0x00500, {0x11, 0x11});
    put(0x100500, {0x22, 0x22});
  }
  void put(std::uint32_t at, std::initializer_list<int> bytes) {
    for (const int b : bytes) recording_.image.set(PhysAddr{at++}, static_cast<std::uint8_t>(b));
  }
  /// What MOV BX,[FFFF:0510] reads after the port write of `bytes`.
  std::uint32_t read_after(std::initializer_list<int> bytes) {
    put(0x10000, {0x90, 0x90, 0x90, 0x90, 0x8b, 0x1e, 0x10, 0x05, 0xf4});
    put(0x10000, bytes);
    Replayer replayer(recording_, nullptr, {});
    const ReplayReport report = replayer.run();
    EXPECT_NE(report.end, ReplayReport::End::diverged);
    return static_cast<std::uint32_t>(*get_register(replayer.machine().save(), "bx"));
  }
  std::uint32_t value_at(bool open) const {
    return open && cpu_traits(GetParam().model).has_a20() ? 0x2222 : 0x1111;
  }

  Recording recording_;
};

TEST_P(AddressMask, IsTheSameAfterAWriteToAPortOfNoGate) {
  EXPECT_EQ(read_after({0xb0, 0x00, 0xe6, 0x7d}), value_at((GetParam().mask & kBit20) != 0));
}

TEST_P(AddressMask, HasTheGateClosedAfterPort92SaysSo) {
  const bool open = !GetParam().follows_gate && (GetParam().mask & kBit20) != 0;
  EXPECT_EQ(read_after({0xb0, 0x00, 0xe6, 0x92}), value_at(open));
}

TEST_P(AddressMask, HasTheGateOpenAfterPort92SaysSo) {
  EXPECT_EQ(read_after({0xb0, 0x02, 0xe6, 0x92}), value_at(true));
}

INSTANTIATE_TEST_SUITE_P(, AddressMask, testing::ValuesIn(kRows), row_name);

}  // namespace
}  // namespace citcat
