// What random programs of long mode, recorded in an emulator, have found the replay do otherwise
// than a processor (docs/monitor.md).

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "replay/session/replayer.h"
#include "unit/replay/machine/long_mode_guest.h"

namespace citcat {
namespace {

struct SystemReads final : Observer {
  Interest interest() const override { return {.reads = true}; }
  void read(PhysAddr at, std::uint32_t, AccessKind kind, Position) override {
    if (kind == AccessKind::system) list.push_back(at.value);
  }
  std::vector<std::uint64_t> list;
};

TEST_F(LongModeGuest, ASystemCallsReturnTrapsByTheFlagsThatItLoads) {
  recording_.initial.msrs = {{0xc0000081, std::uint64_t{0x18} << 48 | std::uint64_t{8} << 32}};
  set_register(recording_.initial, "rcx", kCode + 0x10);
  set_register(recording_.initial, "r11", 0x302);
  put(kCode, {0x48, 0x0f, 0x07});  // sysretq
  put(kCode + 0x10, {0x90});
  EXPECT_NE(run(1).exceptions, 0u);  // before anything else has run
  EXPECT_EQ(after("dr6") & 0x4000, 0x4000u);
  set_register(recording_.initial, "r11", 0x202);
  set_register(recording_.initial, "rflags", 0x102);
  EXPECT_EQ(run(1).exceptions, 0u);
  EXPECT_EQ(after("rip"), kCode + 0x10);
}

TEST_F(LongModeGuest, ALoadReadsTheUpperHalfOfADescriptorOfTheRightTypeAlone) {
  constexpr std::uint64_t kTable = 0x820000000067, kTask = 0x890000000067, kBusy = 0x8b0000000067,
                          kAbsent = 0x020000000067;
  const auto reads_all = [this](std::uint64_t descriptor, std::uint8_t modrm) {
    put_quad(kGdt + 24, descriptor);
    put_quad(kGdt + 32, 0);
    put(kCode, {0x66, 0xb8, 0x18, 0, 0x0f, 0x00, modrm});
    SystemReads reads;
    ReplayOptions options;
    options.to = 2;
    Replayer replayer(recording_, &reads, options);
    replayer.run();
    return std::find(reads.list.begin(), reads.list.end(), kGdt + 36) != reads.list.end();
  };
  constexpr std::uint8_t kLldt = 0xd0, kLtr = 0xd8;
  EXPECT_TRUE(reads_all(kTable, kLldt));
  EXPECT_TRUE(reads_all(kTask, kLtr));
  for (const std::uint64_t refused : {kTask, kAbsent}) EXPECT_FALSE(reads_all(refused, kLldt));
  for (const std::uint64_t refused : {kTable, kBusy}) EXPECT_FALSE(reads_all(refused, kLtr));
}

// x86/debug.c of kvm-unit-tests expects this of processors; SDM vol. 3, 17.2.3, says that bits 0-3
// may be cleared, and that nothing else is.
TEST_F(LongModeGuest, ABreakpointClearsThoseOfAnEarlierOneInDr6) {
  put_quad(kIdt + 16, 0x00018e0000080000 | (kHandler & 0xffff));
  for (const std::uint64_t earlier : {0xffff0ff2, 0xffff4ff8}) {
    set_register(recording_.initial, "dr2", kCode + 1);
    set_register(recording_.initial, "dr6", earlier);
    set_register(recording_.initial, "dr7", 0x420);
    put(kCode, {0x90, 0x90});
    EXPECT_EQ(run(2).exceptions, 1u);
    EXPECT_EQ(after("dr6"), (earlier & ~std::uint64_t{0xf}) | 4);
  }
}

/// Entry 510 names its own table, so that it is the entry of each level for an address there.
TEST_F(LongModeGuest, AnEntryOfSeveralLevelsIsMarkedOnceAndMadeDirtyByTheLast) {
  struct WalkWrites final : Observer {
    Interest interest() const override { return Interest::changes(); }
    void write(PhysAddr at, std::span<const std::uint8_t> bytes, AccessKind kind,
               Position) override {
      if (kind == AccessKind::walk && at.value == kTables + 8 * 510) list.push_back(bytes[0]);
    }
    std::vector<unsigned> list;
  };
  put_quad(kTables + 8 * 510, kTables | 0x03);
  set_register(recording_.initial, "rbx", 0xffffff7fbfdfe000);
  for (const bool store : {false, true}) {
    put(kCode, {0x48, store ? 0x89 : 0x8b, 0x43, 0x10});  // mov [rbx+0x10], rax or back
    WalkWrites writes;
    ReplayOptions options;
    options.to = 1;
    Replayer replayer(recording_, &writes, options);
    replayer.run();
    EXPECT_EQ(writes.list, (store ? std::vector{0x23u, 0x63u} : std::vector{0x23u}));
  }
}

TEST_F(LongModeGuest, InstructionsOfSvmAreUndefinedWhereItIsNotEnabled) {
  for (const int last : {0xd8, 0xd9, 0xda, 0xdf}) {  // VMRUN, VMMCALL, VMLOAD, INVLPGA
    put(kCode, {0x0f, 0x01, last});
    for (const bool enabled : {false, true}) {
      set_register(recording_.initial, "efer", enabled ? 0x1d01 : 0xd01);
      recording_.initial.cpuid = {CpuidLeaf{0x80000001, 0, 0, 4, 0}};
      EXPECT_EQ(run(1).exceptions, enabled ? 0u : 1u) << last;
    }
  }
}

/// What the base of DS is for compatibility mode is nothing to 64-bit mode, also where the engine
/// is given other prefixes than the program has.
TEST_F(LongModeGuest, APrefixThatTheEngineIsGivenAddsNoBase) {
  for (const char* segment : {"ds", "ss", "es"}) {
    const std::string name = segment;
    ASSERT_TRUE(set_register(recording_.initial, name, 16));
    ASSERT_TRUE(set_register(recording_.initial, name + ".base", 0x1000));
    ASSERT_TRUE(set_register(recording_.initial, name + ".limit", ~0u));
    ASSERT_TRUE(set_register(recording_.initial, name + ".attributes", 0xc093));
  }
  ASSERT_TRUE(set_register(recording_.initial, "gs.base", 0x800));
  set_register(recording_.initial, "rax", kData);
  set_register(recording_.initial, "rbp", kData);
  put_quad(kData, 0x2d);
  put_quad(kData + 0x800, 5);
  put_quad(kData + 0x1000, 0x77);
  const auto byte_after = [this](std::initializer_list<int> code, std::uint32_t at) {
    put(kCode, code);
    ReplayOptions options;
    options.to = 1;
    Replayer replayer(recording_, nullptr, options);
    replayer.run();
    return *replayer.machine().memory().host(PhysAddr{at});
  };
  EXPECT_EQ(byte_after({0xf0, 0xf6, 0x18}, kData), 0xd3);        // lock neg byte [rax]
  EXPECT_EQ(byte_after({0xf0, 0xf6, 0x5d, 0}, kData), 0xd3);     // of SS by itself
  EXPECT_EQ(byte_after({0xf0, 0x48, 0xf7, 0x18}, kData), 0xd3);  // of eight bytes
  EXPECT_EQ(byte_after({0x65, 0xf0, 0xf6, 0x18}, kData + 0x800), 0xfb);
  put(kCode, {0x66, 0xff, 0x20});  // jmp [rax], by a processor that takes no notice of 66
  put_quad(kData, kHandler);
  run(1);
  EXPECT_EQ(after("rip"), kHandler);
}

}  // namespace
}  // namespace citcat
