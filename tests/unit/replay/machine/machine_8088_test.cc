// What the 8088 does and the engine does not, executed by the machine: expectations from the 8086
// Family User's Manual, worked out by hand.

#include <gtest/gtest.h>

#include <memory>

#include "replay/machine/machine.h"
#include "silicon/quiet_environment.h"

namespace citcat {
namespace {

constexpr std::uint32_t kCode = 0x1000, kStackSegment = 0x2000, kDataSegment = 0x3000;

/// An 8088 with code at 0100:0000, a stack at 2000:0100 and data at 3000:0000.
class Machine8088 : public testing::Test {
 protected:
  Machine8088() {
    state_.model = CpuModel::i8088;
    set_register(state_, "cs", kCode >> 4);
    set_register(state_, "ss", kStackSegment);
    set_register(state_, "sp", 0x100);
    set_register(state_, "ds", kDataSegment);
    set_register(state_, "es", kDataSegment);
    bus_.bus_bytes = 1;
    bus_.address_mask = 0xfffff;
    for (std::uint32_t a = 0; a < 0x400; ++a) image_.set(PhysAddr{a}, 0);
    for (std::uint32_t a = 0; a < 0x200; ++a) image_.set(PhysAddr{(kStackSegment << 4) + a}, 0);
  }
  void put(std::uint32_t address, std::initializer_list<int> bytes) {
    for (const int b : bytes) image_.set(PhysAddr{address++}, static_cast<std::uint8_t>(b));
  }
  /// From the beginning, on a machine that nothing has run on.
  void run(std::uint64_t instructions) {
    machine_ = std::make_unique<Machine>(CpuModel::i8088, bus_, environment_, nullptr);
    machine_->load(state_, image_);
    machine_->run({instructions, 0});
  }
  std::uint32_t reg(const char* name) { return *get_register(machine_->save(), name) & 0xffff; }
  std::uint32_t word(std::uint32_t address) {
    return *machine_->memory().host(PhysAddr{address}) |
           std::uint32_t{*machine_->memory().host(PhysAddr{address + 1})} << 8;
  }

  CpuState state_;
  BusModel bus_;
  MemoryImage image_;
  silicon::QuietEnvironment environment_;
  std::unique_ptr<Machine> machine_;
};

TEST_F(Machine8088, PushSpStoresTheDecrementedValue) {
  put(kCode, {0x54});
  run(1);
  EXPECT_EQ(reg("sp"), 0xfeu);
  EXPECT_EQ(word((kStackSegment << 4) + 0xfe), 0xfeu);
}

TEST_F(Machine8088, WordsWrapAroundTheSegmentAndLeaveWhatLiesBeyond) {
  put(kCode, {0xff, 0x06, 0xff, 0xff});             // inc word [ffff]
  put((kDataSegment << 4) + 0xffff, {0xff, 0x77});  // beyond the segment: 77
  put(kDataSegment << 4, {0x12});
  run(1);
  EXPECT_EQ(*machine_->memory().host(PhysAddr{(kDataSegment << 4) + 0xffff}), 0x00);
  EXPECT_EQ(*machine_->memory().host(PhysAddr{kDataSegment << 4}), 0x13);
  EXPECT_EQ(*machine_->memory().host(PhysAddr{(kDataSegment << 4) + 0x10000}), 0x77);
}

// Behind LOCK, what later processors call BTS of a register.
TEST_F(Machine8088, PopCsMayBeLocked) {
  put(kCode, {0xf0, 0x0f, 0xba, 0xe8, 0x05});  // lock pop cs; mov dx,5e8
  put((kStackSegment << 4) + 0x100, {0x00, 0x01});
  run(2);
  EXPECT_EQ(reg("dx"), 0x5e8u);
  EXPECT_EQ(reg("sp"), 0x102u);
  EXPECT_EQ(reg("ip"), 5u);
}

TEST_F(Machine8088, APointerAtTheEndOfTheSegmentContinuesAtItsBeginning) {
  put(kCode, {0xc4, 0x06, 0xfe, 0xff, 0xff, 0x2e, 0xfe, 0xff});  // les ax,[fffe]; jmp far [fffe]
  put((kDataSegment << 4) + 0xfffe, {0x34, 0x12});
  put(kDataSegment << 4, {0x00, 0x05});
  put(0x5000 + 0x1234, {0x40});  // inc ax
  run(3);
  EXPECT_EQ(reg("ax"), 0x1235u);
  EXPECT_EQ(reg("es"), 0x0500u);
  EXPECT_EQ(reg("cs"), 0x0500u);
}

// The processor's queue status reports the division, and its handler as the next instruction.
TEST_F(Machine8088, ADivideErrorReturnsPastTheDivisionWhichIsComplete) {
  put(0, {0x00, 0x00, 0x00, 0x05});  // handler at 0500:0000
  put(0x5000, {0x40});               // inc ax
  put(kCode, {0xf6, 0xf3});          // div bl
  run(1);
  EXPECT_EQ(reg("cs"), 0x500u);
  EXPECT_EQ(reg("ip"), 0u);
  EXPECT_EQ(reg("ax"), 0u);
  EXPECT_EQ(word((kStackSegment << 4) + 0xfa), 2u);
  run(2);
  EXPECT_EQ(reg("ax"), 1u);
}

TEST_F(Machine8088, CodeGoesOnAtTheBeginningOfItsSegment) {
  put(kCode + 0xfffe, {0xb8, 0x34});  // mov ax,1234
  put(kCode, {0x12, 0x40});           // inc ax
  set_register(state_, "ip", 0xfffe);
  run(1);
  EXPECT_EQ(reg("ax"), 0x1234u);
  EXPECT_EQ(reg("ip"), 1u);
  run(2);
  EXPECT_EQ(reg("ax"), 0x1235u);
  EXPECT_EQ(machine_->save().eip, 2u);
}

TEST_F(Machine8088, CodeThatEndsWithItsSegmentGoesOnAtItsBeginning) {
  put(kCode + 0xffff, {0x40});                             // inc ax
  put(kCode + 0x10000, {0xf4});                            // beyond
  put(kCode, {0x40, 0x03, 0x06, 0xff, 0xff, 0xeb, 0xf7});  // inc ax; add ax,[ffff]; jmp to fffe
  put(kCode + 0xfffe, {0x90});
  put((kDataSegment << 4) + 0xffff, {0x02});
  put(kDataSegment << 4, {0x01});
  set_register(state_, "ip", 0xffff);
  run(3);
  EXPECT_EQ(reg("ax"), 0x104u);
  run(7);
  EXPECT_EQ(reg("ax"), 0x106u);
  EXPECT_EQ(machine_->save().eip, 1u);
  EXPECT_EQ(*machine_->memory().host(PhysAddr{kCode + 0x10000}), 0xf4);
}

// A state made by hand, or tried by an explanation, may have more than the sixteen bits of IP.
TEST_F(Machine8088, AnInstructionPointerBeyondItsSegmentWrapsAtOnce) {
  put(kCode + 0x10, {0x40});  // inc ax
  set_register(state_, "eip", 0xd370010);
  set_register(state_, "ax", 7);
  run(1);
  EXPECT_EQ(reg("ax"), 8u);
  EXPECT_EQ(machine_->save().eip, 0x11u);
  EXPECT_LE(machine_->stats().engine_runs, 2u);
}

// Words of operands and code may both wrap.
TEST_F(Machine8088, AnInstructionAndItsOperandMayWrapTogether) {
  put(kCode + 0xfffd, {0x83, 0x06, 0xff});  // add word [ffff],5
  put(kCode, {0xff, 0x05});
  put((kDataSegment << 4) + 0xffff, {0xfe, 0x77});
  put(kDataSegment << 4, {0x01});
  set_register(state_, "ip", 0xfffd);
  run(1);
  EXPECT_EQ(*machine_->memory().host(PhysAddr{(kDataSegment << 4) + 0xffff}), 0x03);
  EXPECT_EQ(*machine_->memory().host(PhysAddr{kDataSegment << 4}), 0x02);
  EXPECT_EQ(*machine_->memory().host(PhysAddr{(kDataSegment << 4) + 0x10000}), 0x77);
  EXPECT_EQ(reg("ip"), 2u);
}

TEST_F(Machine8088, CsMayBeLoadedByMov) {
  put(kCode, {0x8e, 0xc8});  // mov cs,ax
  put(0x6002, {0x43});       // inc bx
  set_register(state_, "ax", 0x600);
  run(2);
  EXPECT_EQ(reg("cs"), 0x600u);
  EXPECT_EQ(reg("bx"), 1u);
}

TEST_F(Machine8088, EscWithoutACoprocessorReadsAndDoesNothing) {
  put(kCode, {0xdd, 0x3e, 0x10, 0x00,    // fnstsw [10], which an 8087 would store
              0xd9, 0xe8,                // fld1
              0xd9, 0x0e, 0x10, 0x00});  // no 8087 has it
  put((kDataSegment << 4) + 0x10, {0x34, 0x12});
  state_.cr0 |= kNoCoprocessor;
  run(3);
  EXPECT_EQ(word((kDataSegment << 4) + 0x10), 0x1234u);
  EXPECT_EQ(reg("ip"), 10u);
  EXPECT_EQ(machine_->save().fx, CpuState::default_fx());
}

TEST_F(Machine8088, EscThatTheCoprocessorHasNotGotDoesNothingEither) {
  put(kCode, {0xd9, 0x0e, 0x10, 0x00, 0x40});
  put((kDataSegment << 4) + 0x10, {0x34, 0x12});
  run(2);
  EXPECT_EQ(reg("ax"), 1u);
  EXPECT_EQ(reg("ip"), 5u);
}

TEST_F(Machine8088, QuotientsChangeTheirSignBehindRep) {
  put(kCode, {0xf3, 0xf6, 0xfb});  // rep idiv bl
  set_register(state_, "ax", 7);
  set_register(state_, "bx", 2);
  run(1);
  EXPECT_EQ(reg("ax"), 0x1fdu);
}

TEST_F(Machine8088, ShiftsOfMemoryByMoreThan31ReachTheirOperandAtTheEndOfTheSegment) {
  put(kCode, {0xd3, 0x26, 0xff, 0xff});  // shl word [ffff],cl
  put((kDataSegment << 4) + 0xffff, {0x41, 0x77});
  put(kDataSegment << 4, {0x12});
  set_register(state_, "cx", 4);
  run(1);
  EXPECT_EQ(*machine_->memory().host(PhysAddr{(kDataSegment << 4) + 0xffff}), 0x10);
  EXPECT_EQ(*machine_->memory().host(PhysAddr{kDataSegment << 4}), 0x24);
  EXPECT_EQ(*machine_->memory().host(PhysAddr{(kDataSegment << 4) + 0x10000}), 0x77);
}

TEST_F(Machine8088, AShiftByMoreThan31LosesEverything) {
  put(kCode, {0xd3, 0xe0});  // shl ax, cl
  set_register(state_, "ax", 0xffff);
  set_register(state_, "cx", 0x4121);
  run(1);
  EXPECT_EQ(reg("ax"), 0u);
  EXPECT_EQ(reg("cx"), 0x4121u);
}

TEST_F(Machine8088, ARotationByMoreThan31Repeats) {
  put(kCode, {0xd2, 0xc0});  // rol al, cl
  set_register(state_, "ax", 0x81);
  set_register(state_, "cx", 0x21);
  run(1);
  EXPECT_EQ(reg("ax"), 0x03u);
}

TEST_F(Machine8088, PopCsContinuesInTheNewSegment) {
  put(kCode, {0x0f});
  put((kStackSegment << 4) + 0x100, {0x00, 0x06});
  put(0x6001, {0x40});  // inc ax
  run(2);
  EXPECT_EQ(reg("ax"), 1u);
  EXPECT_EQ(reg("sp"), 0x102u);
}

TEST_F(Machine8088, UndocumentedEncodingsRunAndStayAsTheyAre) {
  put(kCode, {0x64, 0x02, 0x00, 0x00, 0xf0, 0x40});  // je +2 (as 74), lock inc ax
  state_.eflags = 0x42;                              // ZF
  run(2);
  EXPECT_EQ(reg("ax"), 1u);
  EXPECT_EQ(word(kCode), 0x0264u);
  EXPECT_EQ(word(kCode + 4), 0x40f0u);
}

TEST_F(Machine8088, PoppedFlagsHaveOnesInTheirUpperFourBits) {
  put(kCode, {0x9d, 0x9c});  // popf, pushf
  run(2);
  EXPECT_EQ(word((kStackSegment << 4) + 0x100), 0xf002u);
}

TEST(Machine286, LockedBitTestOfARegisterIsUndefined) {
  silicon::QuietEnvironment environment;
  Machine machine{CpuModel::i286, BusModel{CacheForm::none, 0, 2, 0xffffff}, environment, nullptr};
  CpuState state;
  state.model = CpuModel::i286;
  state.idtr = {0, 0x3ff};
  for (const char* const segment : {"cs", "ss", "ds", "es"}) set_register(state, segment, 0x100);
  set_register(state, "sp", 0x800);
  MemoryImage image;
  for (std::uint32_t a = 0; a < 0x6000; ++a) image.set(PhysAddr{a}, a < 0x400 ? 5 : 0x90);
  std::uint32_t at = kCode;
  for (const int b : {0xf0, 0x0f, 0xba, 0xe8, 0x05}) {
    image.set(PhysAddr{at++}, static_cast<std::uint8_t>(b));
  }
  machine.load(state, image);
  machine.run({1, 0});
  const CpuState after = machine.save();
  EXPECT_EQ(after.segment[kCs].selector, 0x0505);
  EXPECT_EQ(after.eip, 0x0506u);
}

}  // namespace
}  // namespace citcat
