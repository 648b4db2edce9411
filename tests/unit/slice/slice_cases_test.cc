// Instructions whose slices were once wrong: registers by their numbers, stacks that a return
// changes, tasks, strings that go down, flags that no manual tells.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "unit/replay/machine/long_mode_guest.h"
#include "unit/replay/machine/paged_guest.h"
#include "unit/slice/small_run.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

constexpr std::uint32_t kA = 0x14000, kB = 0x14010, kC = 0x14020;

std::uint64_t dword_at(const Machine& machine, std::uint32_t address) {
  std::uint32_t value = 0;
  std::memcpy(&value, machine.memory().host(PhysAddr{address}), 4);
  return value;
}
SmallRun::Value dword(std::uint32_t address) {
  return [address](const Machine& machine) { return dword_at(machine, address); };
}
SmallRun::Value reg(const char* name) {
  return [name](const Machine& machine) { return get_register(machine.save(), name).value(); };
}

class SliceCases : public TemporaryFolder {
 protected:
  SliceCases() {
    guest.put_word(kA, 0x1111);
    guest.put_word(kB, 0x2222);
  }
  SmallRun run(std::uint64_t instructions) const {
    return {guest.recording, instructions, path("r.citcat")};
  }
  PagedGuest guest;
};

TEST_F(SliceCases, FstpByItsOtherEncodingPops) {
  guest.add({0xdb, 0x05}, {kA});
  guest.add({0xdb, 0x05}, {kB});
  guest.add({0xd9, 0xd8});  // FSTP ST(0)
  guest.add({0xdb, 0x1d}, {kC});
  guest.add({0x90});
  SmallRun tried = run(4);
  tried.expect(tried.memory(kC, 4), dword(kC), {kA}, {kB});
}

TEST_F(SliceCases, MmxRegistersHaveTheirNumbers) {
  guest.add({0x0f, 0x6f, 0x0d}, {kA});  // movq mm1,[a]
  guest.add({0x0f, 0x6f, 0x15}, {kB});  // movq mm2,[b]
  guest.add({0x0f, 0x7f, 0x0d}, {kC});
  guest.add({0x90});
  SmallRun tried = run(3);
  tried.expect(tried.memory(kC, 4), dword(kC), {kA}, {kB});
}

TEST_F(SliceCases, MmxRegistersAreTheSameWhereTheTopOfTheStackIsAnother) {
  guest.add({0x0f, 0x6f, 0x0d}, {kA});
  guest.add({0x0f, 0x6f, 0x05}, {kB});  // movq mm0,[b]
  guest.add({0xd9, 0xf7});              // fincstp
  guest.add({0x90});
  SmallRun tried = run(3);
  SliceQuery query = tried.query({});
  for (unsigned i = 0; i < 8; ++i) query.mmx.set(place::stack(1).first + i);
  // In the image of FXSAVE ST(0) is the first, which is MM1 here.
  tried.expect(query,
               [](const Machine& machine) {
                 std::uint64_t value = 0;
                 std::memcpy(&value, &machine.save().fx[32], sizeof value);
                 return value;
               },
               {kA}, {kB});
}

TEST_F(SliceCases, WhatFxsaveStoresCameFromNowhereElse) {
  guest.add({0xc7, 0x05}, {kC, 0x55});         // what FXSAVE overwrites: the last opcode
  guest.add({0x0f, 0xae, 0x05}, {kC - 0x10});  // fxsave
  guest.add({0x90});
  SmallRun tried = run(2);
  const Slice slice = tried.slice(tried.memory(kC, 4));
  ASSERT_EQ(slice.steps.size(), 1u);
  EXPECT_TRUE(slice.steps[0].approximate);
}

// ---- flags in bytes

/// ZF comes from one byte and CF from another; the instructions that follow extract one of the two.
class SliceOfFlagsInBytes : public SliceCases {
 protected:
  SliceOfFlagsInBytes() {
    guest.put_word(kB, 1);
    guest.add({0x8b, 0x1d}, {kB});        // mov ebx,[b]
    guest.add({0xa1}, {kA});              // mov eax,[a]
    guest.add({0x85, 0xdb});              // test ebx,ebx
    guest.add({0x0f, 0xba, 0xe0, 0x00});  // bt eax,0
  }
  void expect_carry_of(std::initializer_list<std::initializer_list<int>> rest) {
    expect(rest, {kA}, {kB});
  }
  void expect_zero_of(std::initializer_list<std::initializer_list<int>> rest) {
    expect(rest, {kB}, {kA});
  }

 private:
  void expect(std::initializer_list<std::initializer_list<int>> rest,
              std::initializer_list<int> made_of, std::initializer_list<int> others) {
    for (const auto& code : rest) guest.add(code);
    guest.add({0x90});
    SmallRun tried = run(4 + rest.size());
    tried.expect(
        tried.query({place::gpr(kEcx, 0, 1)}),
        [](const Machine& machine) { return get_register(machine.save(), "ecx").value() & 0xff; },
        made_of, others);
  }
};

TEST_F(SliceOfFlagsInBytes, PushfAndPopfKeepThemApart) {
  expect_carry_of({{0x9c}, {0x84, 0xc0}, {0x9d}, {0x0f, 0x92, 0xc1}});  // test al,al; setc cl
}
TEST_F(SliceOfFlagsInBytes, APoppedImageIsMaskedBitByBit) {
  expect_zero_of({{0x9c}, {0x59}, {0x83, 0xe1, 0x40}});  // pushf; pop ecx; and ecx,40h
}
TEST_F(SliceOfFlagsInBytes, APushedByteIsReadAlone) {
  expect_carry_of({{0x9c}, {0x8a, 0x0c, 0x24}, {0x80, 0xe1, 0x01}});  // mov cl,[esp]; and cl,1
}
TEST_F(SliceOfFlagsInBytes, LahfAndSahfKeepThemApart) {
  expect_zero_of({{0x9f}, {0x38, 0xd8}, {0x9e}, {0x0f, 0x94, 0xc1}});  // cmp al,bl; sahf; setz cl
}
TEST_F(SliceOfFlagsInBytes, LahfHasABitOfEach) {
  expect_carry_of({{0x9f}, {0x88, 0xe1}, {0x80, 0xe1, 0x01}});  // mov cl,ah; and cl,1
}

// ---- parts of vectors

class SliceOfHalves : public SliceCases {
 protected:
  /// XMM1 is made of A, an instruction of B, and the quad at C of half of XMM1.
  void expect(std::initializer_list<int> code, bool has_address, bool high, bool of_b) {
    guest.recording.initial.cr4 |= 0x200;  // OSFXSR
    guest.put_word(kA + 8, 0x3333);
    guest.put_word(kB + 8, 0x4444);
    guest.add({0x0f, 0x10, 0x0d}, {kA});  // movups xmm1,[a]
    guest.add({0x0f, 0x10, 0x15}, {kB});  // movups xmm2,[b]
    if (has_address) {
      guest.add(code, {kB});
    } else {
      guest.add(code);
    }
    guest.add({0x0f, high ? 0x17 : 0x13, 0x0d}, {kC});  // movhps or movlps [c],xmm1
    guest.add({0x90});
    SmallRun tried = run(4);
    const int a = kA + (high ? 8 : 0), b = kB;
    tried.expect(tried.memory(kC, 4), dword(kC), {of_b ? b : a}, {of_b ? a : b});
  }
};

TEST_F(SliceOfHalves, MovlpsKeepsTheHighHalf) { expect({0x0f, 0x12, 0x0d}, true, true, false); }
TEST_F(SliceOfHalves, MovlpsTakesTheLowHalf) { expect({0x0f, 0x12, 0x0d}, true, false, true); }
TEST_F(SliceOfHalves, MovhpdKeepsTheLowHalf) {
  expect({0x66, 0x0f, 0x16, 0x0d}, true, false, false);
}
TEST_F(SliceOfHalves, MovhpdTakesTheHighHalf) {
  expect({0x66, 0x0f, 0x16, 0x0d}, true, true, true);
}
TEST_F(SliceOfHalves, MovlhpsKeepsTheLowHalf) { expect({0x0f, 0x16, 0xca}, false, false, false); }
TEST_F(SliceOfHalves, MovlhpsTakesTheLowHalfOfTheOther) {
  expect({0x0f, 0x16, 0xca}, false, true, true);
}
TEST_F(SliceOfHalves, MovsdKeepsTheHighHalf) {
  expect({0xf2, 0x0f, 0x10, 0xca}, false, true, false);
}
TEST_F(SliceOfHalves, MovsdTakesTheLowHalf) {
  expect({0xf2, 0x0f, 0x10, 0xca}, false, false, true);
}

// ---- returns

class SliceOfReturns : public SliceCases {
 protected:
  static constexpr std::uint32_t kGdt = 0x1000, kUserStack = 0x22800;
  static constexpr int kEip = 0x14100, kCs = 0x14104, kFlags = 0x14108, kEsp = 0x1410c,
                       kSs = 0x14110, kUser = 0x15000;
  SliceOfReturns() {
    for (std::uint32_t d = 0; d < 1024; ++d) {
      guest.put_word(PagedGuest::kDirectory + 4 * d, PagedGuest::kTable | 0x67);
    }
    for (std::uint32_t p = 0; p < PagedGuest::kFrames; ++p) {
      guest.put_word(PagedGuest::kTable + 4 * p, p * kPageSize | 0x67);
    }
    descriptor(0x08, 0xcf9b00);
    descriptor(0x10, 0xcf9300);
    descriptor(0x18, 0xcffa00);  // code of level 3, not accessed yet
    descriptor(0x20, 0xcff200);
    CpuState& s = guest.recording.initial;
    s.gdtr = {kGdt, 0x2f};
    guest.put_word(kEip, kUser);
    guest.put_word(kCs, 0x1b);
    guest.put_word(kFlags, 0x202);
    guest.put_word(kEsp, kUserStack);
    guest.put_word(kSs, 0x23);
    guest.put(kUser, {0x90, 0x90, 0x90});
  }
  void descriptor(std::uint32_t selector, std::uint32_t high) {
    guest.put_word(kGdt + selector, 0xffff);
    guest.put_word(kGdt + selector + 4, high);
  }
  void push(std::initializer_list<int> addresses) {
    for (const int a : addresses) guest.add({0xff, 0x35}, {static_cast<std::uint32_t>(a)});
  }
};

TEST_F(SliceOfReturns, IretTakesTheOuterStackFromItsFrame) {
  push({kSs, kEsp, kFlags, kCs, kEip});
  guest.add({0xcf});
  SmallRun tried = run(6);
  tried.expect(tried.query({place::gpr(citcat::kEsp, 0, 4)}), reg("esp"), {kEsp}, {kFlags, kEip});
  tried.expect(tried.query({place::flag(0)}), reg("eflags"), {kFlags}, {kEsp});
  const Slice stack = tried.slice(tried.query({place::segment(citcat::kSs)}));
  EXPECT_EQ(SmallRun::image_bytes(stack), (std::set<std::uint64_t>{kSs, kSs + 1}));
  EXPECT_FALSE(
      SmallRun::names_register(tried.slice(tried.query({place::gpr(citcat::kEsp, 0, 4)})), "esp"));
}

TEST_F(SliceOfReturns, FarReturnTakesTheOuterStackFromBehindItsParameters) {
  push({kSs, kEsp, static_cast<int>(kA), kCs, kEip});
  guest.add({0xca, 4, 0});  // retf 4
  SmallRun tried = run(6);
  tried.expect(tried.query({place::gpr(citcat::kEsp, 0, 4)}), reg("esp"), {kEsp},
               {static_cast<int>(kA), kEip});
}

TEST_F(SliceOfReturns, FarReturnToTheSameLevelGoesOnOnItsStack) {
  guest.put_word(kCs, 8);
  push({kCs, kEip});
  guest.add({0xcb});
  SmallRun tried = run(3);
  const Slice slice = tried.slice(tried.query({place::gpr(citcat::kEsp, 0, 4)}));
  EXPECT_TRUE(SmallRun::image_bytes(slice).empty());
  EXPECT_TRUE(SmallRun::names_register(slice, "esp"));
}

TEST_F(SliceOfReturns, IretToVirtual8086ModeTakesSegmentsFromItsFrame) {
  constexpr int kFs = 0x14114;
  guest.put_word(kEip, 0x100);
  guest.put_word(kCs, 0x1500);
  guest.put(0x15100, {0x90, 0x90});
  guest.put_word(kFlags, 0x20202);
  guest.put_word(kFs, 0x1234);
  push({static_cast<int>(kA), kFs, static_cast<int>(kB), static_cast<int>(kB), kSs, kEsp, kFlags,
        kCs, kEip});
  guest.add({0xcf});
  SmallRun tried = run(10);
  const auto fs = [](const Machine& m) { return get_register(m.save(), "fs").value(); };
  tried.expect(tried.query({place::segment(citcat::kFs)}), fs, {kFs}, {static_cast<int>(kA), kEsp});
}

// ---- registers that are one place, whatever their size

class SliceOfWholeRegisters : public SliceOfReturns {
 protected:
  using Bytes = std::set<std::uint64_t>;
  static constexpr std::uint64_t kSelector = kSs;  // 23h
  const Bytes selector{kSelector, kSelector + 1};
  static Bytes dword_of(std::uint64_t a) { return {a, a + 1, a + 2, a + 3}; }

  Bytes of(SmallRun& tried, PlaceRange places) const {
    return SmallRun::image_bytes(tried.slice(tried.query({places})));
  }
  Bytes of(SmallRun& tried, std::uint32_t address) const {
    return SmallRun::image_bytes(tried.slice(tried.memory(address, 1)));
  }
  /// mov REGISTER,[address]
  void load(int number, std::uint64_t address) {
    guest.add({0x8b, 0x05 | number << 3}, {static_cast<std::uint32_t>(address)});
  }
};

TEST_F(SliceOfWholeRegisters, ASegmentRegisterIsMadeOfAllOfItsSelector) {
  load(kEax, kSelector);
  guest.add({0x8e, 0xd8});                                           // mov ds,eax
  guest.add({0x8e, 0x25}, {static_cast<std::uint32_t>(kSelector)});  // mov fs,[selector]
  guest.add({0xff, 0x35}, {static_cast<std::uint32_t>(kSelector)});  // push [selector]
  guest.add({0x07});                                                 // pop es
  guest.add({0x90});
  SmallRun tried = run(5);
  EXPECT_EQ(of(tried, place::segment(citcat::kDs)), selector);
  EXPECT_EQ(of(tried, place::segment(citcat::kFs)), selector);
  EXPECT_EQ(of(tried, place::segment(citcat::kEs)), selector);
}

TEST_F(SliceOfWholeRegisters, EachByteOfASelectorIsMadeOfTheSegmentRegister) {
  guest.add({0x8e, 0x25}, {static_cast<std::uint32_t>(kSelector)});  // mov fs,[selector]
  load(kEcx, kA);
  guest.add({0x8c, 0xe1});        // mov ecx,fs
  guest.add({0x8c, 0x25}, {kC});  // mov [c],fs
  guest.add({0x68}, {0});         // push 0
  guest.add({0x0f, 0xa0});        // push fs
  guest.add({0x5a});              // pop edx
  guest.add({0x90});
  SmallRun tried = run(7);
  for (const unsigned byte : {0u, 1u}) {
    EXPECT_EQ(of(tried, place::gpr(kEcx, byte, 1)), selector) << byte;
    EXPECT_EQ(of(tried, place::gpr(kEdx, byte, 1)), selector) << byte;
    EXPECT_EQ(of(tried, kC + byte), selector) << byte;
  }
  EXPECT_EQ(of(tried, place::gpr(kEcx, 2, 2)), Bytes{});
}

TEST_F(SliceOfWholeRegisters, AFarCallPushesAllOfItsSelector) {
  guest.add({0x9a}, {0x15000});
  guest.put(PagedGuest::kMain + 5, {0x08, 0});
  guest.put(0x15000, {0x90, 0x90});
  SmallRun tried = run(1);
  for (const std::uint32_t byte : {0u, 1u}) {
    const Slice slice = tried.slice(tried.memory(PagedGuest::kStack - 4 + byte, 1));
    EXPECT_TRUE(SmallRun::names_register(slice, "cs")) << byte;
  }
}

TEST_F(SliceOfWholeRegisters, ControlAndDebugRegistersAreMadeOfAllThatIsMoved) {
  load(kEax, kA);
  guest.add({0x0f, 0x22, 0xd0});  // mov cr2,eax
  guest.add({0x0f, 0x20, 0xd1});  // mov ecx,cr2
  load(kEax, kB);
  guest.add({0x0f, 0x23, 0xc0});  // mov dr0,eax
  guest.add({0x31, 0xc0});        // xor eax,eax
  guest.add({0x0f, 0x23, 0xc8});  // mov dr1,eax
  guest.add({0x0f, 0x21, 0xc2});  // mov edx,dr0
  guest.add({0x90});
  SmallRun tried = run(8);
  EXPECT_EQ(of(tried, place::one(place::kControl + 1)), dword_of(kA));
  EXPECT_EQ(of(tried, place::gpr(kEcx, 3, 1)), dword_of(kA));
  EXPECT_EQ(of(tried, place::gpr(kEdx, 0, 1)), dword_of(kB));
}

TEST_F(SliceOfWholeRegisters, ClearingTaskSwitchedKeepsWhatCr0WasMadeOf) {
  guest.add({0x0f, 0x20, 0xc0});  // mov eax,cr0
  guest.add({0x0f, 0x22, 0xc0});  // mov cr0,eax
  guest.add({0x0f, 0x01, 0xf0});  // lmsw ax
  guest.add({0x0f, 0x06});        // clts
  guest.add({0x90});
  SmallRun tried = run(4);
  const Slice slice = tried.slice(tried.query({place::one(place::kControl)}));
  ASSERT_EQ(slice.steps.size(), 4u);
  EXPECT_TRUE(slice.steps[1].reads[place::kControl]);
  EXPECT_TRUE(SmallRun::names_register(slice, "cr0"));
}

TEST_F(SliceOfWholeRegisters, TheControlWordsOfTheFpuHaveAllOfTheirBytes) {
  constexpr std::uint32_t kImage = 0x16000;
  guest.put_word(kA, 0x037f);
  guest.put_word(kB, 0x1f80);
  guest.recording.initial.cr4 |= 0x200;        // OSFXSR
  guest.add({0xd9, 0x2d}, {kA});               // fldcw
  guest.add({0x0f, 0xae, 0x15}, {kB});         // ldmxcsr
  guest.add({0x0f, 0xae, 0x05}, {kImage});     // fxsave
  guest.add({0xdd, 0x35}, {kC});               // fnsave, which sets what has no MXCSR
  guest.add({0x0f, 0xae, 0x1d}, {kC + 0x80});  // stmxcsr
  guest.add({0x90});
  SmallRun tried = run(5);
  const Bytes word{kA, kA + 1};
  EXPECT_EQ(of(tried, kImage + 1), word);
  EXPECT_EQ(of(tried, kC + 1), word);
  EXPECT_EQ(of(tried, kImage + 25), dword_of(kB));
  EXPECT_EQ(of(tried, kC + 0x81), dword_of(kB));
}

class SliceOfLongMode : public LongModeGuest {
 protected:
  std::string archive() const {
    return (std::filesystem::path(::testing::TempDir()) /
            ("long_" + std::to_string(getpid()) + ".citcat"))
        .string();
  }
};

TEST_F(SliceOfLongMode, IretqTakesTheStackFromItsFrameAtTheSameLevel) {
  put_quad(kData, kCode + 0x100);
  put_quad(kData + 8, 8);
  put_quad(kData + 16, 0x202);
  put_quad(kData + 24, kStack - 0x100);
  put_quad(kData + 32, 16);
  auto push = [this, at = std::uint32_t{kCode}](std::uint32_t from) mutable {  // push qword [from]
    put(at, {0xff, 0x34, 0x25, static_cast<int>(from & 0xff), static_cast<int>(from >> 8 & 0xff),
             static_cast<int>(from >> 16 & 0xff), 0});
    return at += 7;
  };
  std::uint32_t end = kCode;
  for (const std::uint32_t offset : {32u, 24u, 16u, 8u, 0u}) end = push(kData + offset);
  put(end, {0x48, 0xcf});
  put(kCode + 0x100, {0x90, 0x90});
  SmallRun tried(recording_, 6, archive());
  tried.expect(tried.query({place::gpr(kEsp, 0, 8)}), reg("rsp"), {kData + 24}, {kData + 16});
  EXPECT_FALSE(SmallRun::names_register(tried.slice(tried.query({place::gpr(kEsp, 0, 8)})), "rsp"));
  std::filesystem::remove(archive());
}

TEST_F(SliceOfLongMode, BasesOfSegmentsAreMovedByInstructionsOfTheirOwn) {
  recording_.initial.cr4 |= 1u << 16;  // FSGSBASE
  put_quad(kData, kData + 0x100);
  put(kCode, {0x48, 0x8b, 0x04, 0x25, kData & 0xff, kData >> 8 & 0xff, kData >> 16, 0});
  put(kCode + 8, {0xf3, 0x48, 0x0f, 0xae, 0xd8});   // wrgsbase rax
  put(kCode + 13, {0xf3, 0x48, 0x0f, 0xae, 0xc9});  // rdgsbase rcx
  put(kCode + 18, {0x90, 0x90});
  SmallRun tried(recording_, 3, archive());
  tried.expect(tried.query({place::gpr(kEcx, 0, 8)}), reg("rcx"), {kData, kData + 1}, {kData + 16});
  std::filesystem::remove(archive());
}

// ---- tasks and gates

class SliceOfTasks : public SliceOfReturns {
 protected:
  static constexpr std::uint32_t kOld = 0x3000, kNew = 0x3200;
  SliceOfTasks() {
    guest.put_word(kGdt + 0x28, 0x30000067);
    guest.put_word(kGdt + 0x2c, 0x8b00);  // the task that runs
    guest.put_word(kGdt + 0x30, 0x32000067);
    guest.put_word(kGdt + 0x34, 0x8900);
    CpuState& s = guest.recording.initial;
    s.gdtr = {kGdt, 0x3f};
    s.tr = {0x28, kOld, 0x67, 0x8b, false};
    s.gpr[kEbx] = 0x77;
    guest.put_word(kOld + 0x1c, PagedGuest::kDirectory);
    guest.put_word(kNew + 0x1c, PagedGuest::kDirectory);
    guest.put_word(kNew + 0x20, 0x15000);
    guest.put_word(kNew + 0x24, 2);
    guest.put_word(kNew + 0x34, 0xbbbb);  // EBX
    guest.put_word(kNew + 0x38, 0x22800);
    for (const std::uint32_t offset : {0x48u, 0x50u, 0x54u}) guest.put_word(kNew + offset, 0x10);
    guest.put_word(kNew + 0x4c, 8);
    guest.put_word(kNew + 0x64, 0);
  }
};

TEST_F(SliceOfTasks, AnotherTaskHasItsRegistersFromItsSegment) {
  guest.add({0xea}, {0});
  guest.put(PagedGuest::kMain + 5, {0x30, 0});
  SmallRun tried = run(1);
  tried.expect(tried.query({place::gpr(kEbx, 0, 4)}), reg("ebx"), {kNew + 0x34}, {kNew + 0x38});
}

TEST_F(SliceOfTasks, TheTaskThatIsLeftHasItsRegistersInItsSegment) {
  guest.add({0x8b, 0x0d}, {kA});  // mov ecx,[a]
  guest.add({0xea}, {0});
  guest.put(PagedGuest::kMain + 11, {0x30, 0});
  SmallRun tried = run(2);
  tried.expect(tried.memory(kOld + 0x2c, 4), dword(kOld + 0x2c), {kA}, {kB});
  EXPECT_TRUE(SmallRun::names_register(tried.slice(tried.memory(kOld + 0x34, 4)), "ebx"));
}

TEST_F(SliceOfTasks, TheTaskThatIsReturnedToHasItsOwnRegisters) {
  guest.add({0x8b, 0x1d}, {kA});  // mov ebx,[a]
  guest.add({0x9a}, {0});         // call 30:0
  guest.put(PagedGuest::kMain + 11, {0x30, 0});
  guest.put(0x15000, {0xcf});
  guest.put(PagedGuest::kMain + 13, {0x90, 0x90});
  SmallRun tried = run(3);
  tried.expect(tried.query({place::gpr(kEbx, 0, 4)}), reg("ebx"), {kA}, {kNew + 0x34});
}

TEST_F(SliceOfReturns, ParametersGoThroughACallGate) {
  constexpr int kTss = 0x3000;
  guest.put_word(kGdt + 0x28, 0x85000);  // to 8:5000, two parameters
  guest.put_word(kGdt + 0x2c, 0xec02);
  guest.put_word(kTss + 4, 0x24f00);
  guest.put_word(kTss + 8, 0x10);
  CpuState& s = guest.recording.initial;
  s.tr = {0x30, kTss, 0x67, 0x8b, false};
  s.segment.fill({0x23, 0, 0xffffffff, 0xc0f3, false});
  s.segment[citcat::kCs] = {0x1b, 0, 0xffffffff, 0xc0fb, false};
  s.cr0 |= 1;
  push({static_cast<int>(kA), static_cast<int>(kB)});
  guest.add({0x9a}, {0});
  guest.put(PagedGuest::kMain + 17, {0x2b, 0});
  guest.put(0x5000, {0x8b, 0x44, 0x24, 0x08, 0x90});  // mov eax,[esp+8]: the last one pushed
  SmallRun tried = run(4);
  tried.expect(tried.query({place::gpr(kEax, 0, 4)}), reg("eax"), {static_cast<int>(kB)},
               {static_cast<int>(kA)});
}

// ---- far back

// Behind the last stretch that is written down, what is looked for is memory alone.
TEST_F(SliceCases, StoresFarBackAreFound) {
  constexpr std::uint32_t kRounds = 0x30000;
  const auto loop = [&] {
    guest.add({0xb9}, {kRounds});  // mov ecx
    guest.add({0x49});             // dec ecx
    guest.add({0x75, 0xfd});       // jnz
  };
  guest.add({0xa1}, {kA});  // mov eax,[a]
  guest.add({0xa3}, {kC});  // mov [c],eax
  loop();
  guest.add({0xa3}, {kC});  // the same value again
  loop();
  guest.add({0x90});
  constexpr std::uint64_t kLoop = 1 + 2 * kRounds;
  SmallRun tried = run(3 + 2 * kLoop);
  tried.expect(tried.memory(kC, 4), dword(kC), {kA}, {kB});
  const Slice slice = tried.slice(tried.memory(kC, 4));
  ASSERT_EQ(slice.steps.size(), 2u);
  EXPECT_EQ(slice.steps[0].position, (Position{2 + kLoop, 0}));
  EXPECT_EQ(slice.steps[1].position, (Position{0, 0}));
  // What nothing stored to.
  EXPECT_TRUE(tried.slice(tried.memory(kB, 4)).steps.empty());
  tried.expect(tried.memory(kB, 4), dword(kB), {kB}, {kA});
}

// ---- strings, flags, exceptions

TEST_F(SliceCases, StringsThatGoDownAreAtTheirAddresses) {
  guest.add({0xfd});               // std
  guest.add({0xbe}, {kA + 0x0c});  // mov esi
  guest.add({0xbf}, {kC + 0x0c});  // mov edi
  guest.add({0xb9}, {4});          // mov ecx
  guest.add({0xf3, 0xa5});         // rep movsd
  guest.add({0x90});
  SmallRun tried = run(5);
  tried.expect(tried.memory(kC, 4), dword(kC), {kA}, {kA + 4, kA + 8, kA + 12});
  const Slice slice = tried.slice(tried.memory(kC, 16));
  for (const SliceStep& step : slice.steps) {
    for (const SliceMemory& m : step.stores) {
      EXPECT_GE(m.linear.value, kC) << step.position.iteration;
      EXPECT_LT(m.linear.value, kC + 16) << step.position.iteration;
      EXPECT_EQ(m.linear.value, m.physical.value);
    }
  }
}

TEST_F(SliceCases, FlagsThatNoManualTellsAreSaidToBeSo) {
  guest.add({0xa1}, {kA});        // mov eax,[a]
  guest.add({0x83, 0xc0, 0x0f});  // add eax,15
  guest.add({0x23, 0x05}, {kB});  // and eax,[b]: AF is undefined
  guest.add({0x90});
  SmallRun tried = run(3);
  const Slice adjust = tried.slice(tried.query({place::flag(4)}));
  ASSERT_FALSE(adjust.steps.empty());
  EXPECT_TRUE(adjust.steps[0].undefined[place::kFlags + 4]);
  const Slice zero = tried.slice(tried.query({place::flag(6)}));
  ASSERT_FALSE(zero.steps.empty());
  EXPECT_TRUE(zero.steps[0].undefined.none());
}

TEST_F(SliceOfReturns, ThatAnExceptionWasRaisedIsSaidToBeGiven) {
  constexpr std::uint32_t kIdt = 0x2000;
  guest.put_word(kIdt + 8 * 6, 0x85000);
  guest.put_word(kIdt + 8 * 6 + 4, 0x8e00);
  guest.put(0x5000, {0x90, 0x90});
  guest.recording.initial.idtr = {kIdt, 0xff};
  guest.add({0x0f, 0x0b});  // ud2
  SmallRun tried = run(1);
  const Slice slice = tried.slice(tried.memory(PagedGuest::kStack - 4, 4));
  ASSERT_EQ(slice.steps.size(), 1u);
  EXPECT_EQ(slice.exceptions_given, 1u);
}

}  // namespace
}  // namespace citcat::test
