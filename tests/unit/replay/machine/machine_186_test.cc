// What the 80186 and NEC's V20 do and the 8086 does not, executed by the machine: expectations from
// the iAPX 186 and V20/V30 User's Manuals, worked out by hand.

#include <gtest/gtest.h>

#include <memory>

#include "replay/machine/machine.h"
#include "replay/machine/replay_stopped.h"
#include "silicon/quiet_environment.h"

namespace citcat {
namespace {

constexpr std::uint32_t kEarlyCode = 0x1000, kEarlyStack = 0x2000, kEarlyData = 0x3000;

/// Code at 0100:0000, a stack at 2000:0100, data at 3000:0000, handlers at 0500:0000.
class EarlyMachine : public testing::Test {
 protected:
  explicit EarlyMachine(CpuModel model) {
    state_.model = model;
    state_.cr0 |= kNoCoprocessor;
    set_register(state_, "cs", kEarlyCode >> 4);
    set_register(state_, "ss", kEarlyStack);
    set_register(state_, "sp", 0x100);
    set_register(state_, "ds", kEarlyData);
    set_register(state_, "es", kEarlyData);
    for (std::uint32_t a = 0; a < 0x400; ++a) image_.set(PhysAddr{a}, a % 4 == 3 ? 5 : 0);
    put(0x5000, {0x90, 0x90});
    for (std::uint32_t a = 0; a < 0x200; ++a) {
      image_.set(PhysAddr{(kEarlyStack << 4) + a}, 0);
      image_.set(PhysAddr{(kEarlyData << 4) + a}, 0);
    }
  }
  void put(std::uint32_t address, std::initializer_list<int> bytes) {
    for (const int b : bytes) image_.set(PhysAddr{address++}, static_cast<std::uint8_t>(b));
  }
  void code(std::initializer_list<int> bytes) { put(kEarlyCode, bytes); }
  void data(std::uint32_t offset, std::initializer_list<int> bytes) {
    put((kEarlyData << 4) + offset, bytes);
  }
  /// From the beginning, on a machine that nothing has run on.
  void run(std::uint64_t instructions) {
    const BusModel bus{CacheForm::none, 0, 2, 0xfffff};
    machine_ = std::make_unique<Machine>(state_.model, bus, environment_, nullptr);
    machine_->load(state_, image_);
    machine_->run({instructions, 0});
  }
  /// Why it does not go on; empty where it does.
  std::string stop(std::uint64_t instructions) {
    try {
      run(instructions);
      return "";
    } catch (const ReplayStopped& stopped) {
      return stopped.reason;
    }
  }
  std::uint32_t reg(const char* name) { return *get_register(machine_->save(), name) & 0xffff; }
  std::uint8_t byte(std::uint32_t address) { return *machine_->memory().host(PhysAddr{address}); }
  std::uint8_t data_byte(std::uint32_t offset) { return byte((kEarlyData << 4) + offset); }

  CpuState state_;
  MemoryImage image_;
  silicon::QuietEnvironment environment_;
  std::unique_ptr<Machine> machine_;
};

class Machine186 : public EarlyMachine {
 protected:
  Machine186() : EarlyMachine(CpuModel::i80186) {}
};
class MachineV20 : public EarlyMachine {
 protected:
  MachineV20() : EarlyMachine(CpuModel::v20) {}
};

TEST_F(Machine186, HasItsOwnInstructions) {
  code({0x68, 0x34, 0x12,          // push 1234
        0x6a, 0xff,                // push -1
        0xc1, 0xe0, 0x04,          // shl ax,4
        0x6b, 0xd8, 0x03,          // imul bx,ax,3
        0xc8, 0x04, 0x00, 0x00});  // enter 4,0
  set_register(state_, "ax", 0x0102);
  run(5);
  EXPECT_EQ(reg("ax"), 0x1020u);
  EXPECT_EQ(reg("bx"), 0x3060u);
  EXPECT_EQ(byte((kEarlyStack << 4) + 0xfe), 0x34);
  EXPECT_EQ(byte((kEarlyStack << 4) + 0xfc), 0xff);
  EXPECT_EQ(reg("bp"), 0xfau);
  EXPECT_EQ(reg("sp"), 0xf6u);
}

TEST_F(Machine186, OpcodesThatItHasNotGotRaiseInterrupt6) {
  for (const int opcode : {0x0f, 0x63, 0x64, 0x66, 0xf1}) {
    code({opcode, 0xc0, 0x90, 0x90});
    run(1);
    EXPECT_EQ(reg("cs"), 0x500u) << std::hex << opcode;
    EXPECT_EQ(byte((kEarlyStack << 4) + 0xfa), 0) << std::hex << opcode;  // returns to it
  }
}

TEST_F(Machine186, ShiftsGoByFiveBitsOfTheirCount) {
  code({0xd3, 0xe0});
  set_register(state_, "ax", 1);
  set_register(state_, "cx", 0x21);
  run(1);
  EXPECT_EQ(reg("ax"), 2u);
}

TEST_F(Machine186, TheLeastQuotientIsOne) {
  code({0xf6, 0xfb});
  set_register(state_, "ax", 0xff80);
  set_register(state_, "bx", 1);
  run(1);
  EXPECT_EQ(reg("ax"), 0x0080u);
}

TEST_F(Machine186, AWordAtTheEndOfASegmentReachesBeyond) {
  code({0xa1, 0xff, 0xff});
  data(0xffff, {0x34, 0x12});
  run(1);
  EXPECT_EQ(reg("ax"), 0x1234u);
}

TEST_F(Machine186, PushesTheStackPointerAsThe8086Does) {
  code({0x54});
  run(1);
  EXPECT_EQ(byte((kEarlyStack << 4) + 0xfe), 0xfe);
}

TEST_F(MachineV20, TestsAndChangesBits) {
  code({0x0f, 0x18, 0xc0, 0x03,        // test1 al,3
        0x0f, 0x15, 0x06, 0x10, 0x00,  // set1 word [10],cl
        0x0f, 0x1a, 0xc4, 0x07,        // clr1 ah,7
        0x0f, 0x1f, 0xc3, 0x0f});      // not1 bx,15
  set_register(state_, "ax", 0x8108);
  set_register(state_, "cx", 0x1c);
  run(1);
  EXPECT_EQ(machine_->save().eflags & 0x841, 0u);
  run(4);
  EXPECT_EQ(data_byte(0x11), 0x10);
  EXPECT_EQ(reg("ax"), 0x0108u);
  EXPECT_EQ(reg("bx"), 0x8000u);
}

TEST_F(MachineV20, ABitThatIsClearSetsZ) {
  code({0x0f, 0x10, 0xc0});  // test1 al,cl
  set_register(state_, "ax", 0xf7);
  set_register(state_, "cx", 3);
  state_.eflags |= 0x801;
  run(1);
  EXPECT_EQ(machine_->save().eflags & 0x841, 0x40u);
}

TEST_F(MachineV20, RotatesDigitsThroughAl) {
  code({0x0f, 0x28, 0x06, 0x10, 0x00, 0x0f, 0x2a, 0xc3});  // rol4 [10]; ror4 bl
  data(0x10, {0x12});
  set_register(state_, "ax", 0xab3c);
  set_register(state_, "bx", 0x0056);
  run(1);
  EXPECT_EQ(data_byte(0x10), 0x2c);
  EXPECT_EQ(reg("ax"), 0xab31u);
  run(2);
  EXPECT_EQ(reg("bx"), 0x0015u);
  EXPECT_EQ(reg("ax"), 0xab36u);
}

TEST_F(MachineV20, AddsAndSubtractsDecimalsOfMemory) {
  code({0x0f, 0x20, 0x0f, 0x22, 0x0f, 0x26});  // add4s; sub4s; cmp4s
  data(0x10, {0x75, 0x99, 0x00});
  data(0x20, {0x50, 0x00, 0x00});
  set_register(state_, "cx", 5);
  set_register(state_, "si", 0x10);
  set_register(state_, "di", 0x20);
  run(1);
  EXPECT_EQ(data_byte(0x20), 0x25);
  EXPECT_EQ(data_byte(0x21), 0x00);
  EXPECT_EQ(data_byte(0x22), 0x01);
  EXPECT_EQ(machine_->save().eflags & 0x41, 0u);
  run(2);
  EXPECT_EQ(data_byte(0x20), 0x50);
  EXPECT_EQ(data_byte(0x22), 0x00);
  run(3);
  EXPECT_EQ(data_byte(0x20), 0x50);
  EXPECT_EQ(machine_->save().eflags & 0x41, 1u);
  EXPECT_EQ(reg("di"), 0x20u);
}

TEST_F(MachineV20, MovesFieldsOfBits) {
  code({0x0f, 0x39, 0xc1, 0x07,  // ins cl,8 bits
        0x0f, 0x33, 0xd9});      // ext cl,bl: as many bits as bl has and one
  data(0x10, {0xff, 0xff, 0xff, 0xff});
  data(0x20, {0x00, 0xa0, 0x05, 0x00});
  set_register(state_, "ax", 0x1234);
  set_register(state_, "cx", 12);
  set_register(state_, "bx", 6);
  set_register(state_, "di", 0x10);
  set_register(state_, "si", 0x20);
  run(1);
  EXPECT_EQ(data_byte(0x11), 0x4f);
  EXPECT_EQ(data_byte(0x12), 0xf3);
  EXPECT_EQ(reg("cx"), 4u);
  EXPECT_EQ(reg("di"), 0x12u);
  set_register(state_, "cx", 13);
  code({0x0f, 0x33, 0xd9});
  run(1);
  EXPECT_EQ(reg("ax"), 0x2du);  // 5a000 >> 13, seven bits
  EXPECT_EQ(reg("cx"), 4u);
  EXPECT_EQ(reg("si"), 0x22u);
}

TEST_F(MachineV20, CountsShiftsAsThe8086AndRefusesTheLeastQuotient) {
  code({0xc1, 0xe0, 0x20, 0xf6, 0xfb});  // shl ax,32; idiv bl
  set_register(state_, "ax", 0xffff);
  run(1);
  EXPECT_EQ(reg("ax"), 0u);
  code({0xf6, 0xfb});
  set_register(state_, "ax", 0xff80);
  set_register(state_, "bx", 1);
  run(1);
  EXPECT_EQ(reg("cs"), 0x500u);
  EXPECT_EQ(byte((kEarlyStack << 4) + 0xfa), 2);
}

TEST_F(MachineV20, WhatIsNotReplayedIsSaid) {
  code({0x0f, 0xff, 0x10});
  EXPECT_EQ(stop(1), "BRKEM: the emulation of an 8080 is not replayed");
  code({0x65, 0xa6, 0x90});
  set_register(state_, "cx", 1);
  EXPECT_EQ(stop(1), "REPC and REPNC before CMPS and SCAS are not replayed");
}

TEST_F(MachineV20, RepcBeforeOtherStringsIsRep) {
  code({0x65, 0xaa});  // repc stosb
  set_register(state_, "ax", 0x5a);
  set_register(state_, "cx", 3);
  set_register(state_, "di", 0x40);
  run(1);
  EXPECT_EQ(data_byte(0x42), 0x5a);
  EXPECT_EQ(data_byte(0x43), 0);
  EXPECT_EQ(reg("cx"), 0u);
}

}  // namespace
}  // namespace citcat
