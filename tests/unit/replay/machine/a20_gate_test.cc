#include "replay/machine/a20_gate.h"

#include <gtest/gtest.h>

namespace citcat::test {
namespace {

TEST(A20Gate, FollowsBitOneOfPort92) {
  A20Gate gate;
  gate.port_write(0x92, 1, 0x00);
  EXPECT_FALSE(gate.open());
  EXPECT_EQ(gate.mask(), 0xffefffffu);
  gate.port_write(0x92, 1, 0x02);
  EXPECT_TRUE(gate.open());
  EXPECT_EQ(gate.mask(), 0xffffffffu);
}

TEST(A20Gate, LeavesTheOtherBitsOfTheMaskItWasLoadedWith) {
  A20Gate gate;
  gate.load(0x00ffffff);
  EXPECT_TRUE(gate.open());
  gate.port_write(0x92, 1, 0x00);
  EXPECT_EQ(gate.mask(), 0x00efffffu);
  gate.load(0x00efffff);
  EXPECT_FALSE(gate.open());
  gate.port_write(0x92, 1, 0x02);
  EXPECT_EQ(gate.mask(), 0x00ffffffu);
}

TEST(A20Gate, FollowsTheKeyboardControllersOutputPortAfterItsCommand) {
  A20Gate gate;
  gate.port_write(0x60, 1, 0x00);  // data for the keyboard
  EXPECT_TRUE(gate.open());
  gate.port_write(0x64, 1, 0xd1);
  EXPECT_TRUE(gate.awaits_output_port());
  gate.port_write(0x60, 1, 0xdd);
  EXPECT_FALSE(gate.open());
  gate.port_write(0x60, 1, 0xdf);  // data again: the command held for one byte
  EXPECT_FALSE(gate.open());
  gate.port_write(0x64, 1, 0xd1);
  gate.port_write(0x60, 1, 0xdf);
  EXPECT_TRUE(gate.open());
}

TEST(A20Gate, AnotherCommandEndsTheWaitForTheOutputPort) {
  A20Gate gate;
  gate.port_write(0x64, 1, 0xd1);
  gate.port_write(0x64, 1, 0xae);
  gate.port_write(0x60, 1, 0x00);
  EXPECT_TRUE(gate.open());
}

TEST(A20Gate, TakesTheShortCommandsAndWideWrites) {
  A20Gate gate;
  gate.port_write(0x64, 1, 0xdd);
  EXPECT_FALSE(gate.open());
  gate.port_write(0x64, 1, 0xdf);
  EXPECT_TRUE(gate.open());
  gate.port_write(0x91, 2, 0x0000);  // the upper byte is at 92h
  EXPECT_FALSE(gate.open());
}

}  // namespace
}  // namespace citcat::test
