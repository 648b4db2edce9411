// Instructions of 64-bit mode, on a guest with four levels of page tables: what the engine does
// otherwise than the processor, and what is refused. Whole kernels: tests/acceptance.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "formats/io/error.h"
#include "replay/session/replayer.h"

namespace citcat {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// Linear memory is physical memory, in pages of 2 MiB; that at 200000 may not be executed. Vectors
/// 6 and 14 lead to 18000.
class LongModeGuest : public testing::Test {
 protected:
  static constexpr std::uint32_t kTables = 0x1000, kGdt = 0x5000, kIdt = 0x6000, kCode = 0x10000,
                                 kHandler = 0x18000, kData = 0x20000, kStack = 0x30000;

  void SetUp() override {
    for (std::uint32_t at = 0; at < 0x40000; ++at) recording_.image.set(PhysAddr{at}, 0);
    put_quad(kTables, kTables + 0x1007);
    put_quad(kTables + 0x1000, kTables + 0x2007);
    put_quad(kTables + 0x2000, 0x87);
    put_quad(kTables + 0x2008, 0x8000000000200087);
    put_quad(kGdt + 8, 0x00af9b000000ffff);
    put_quad(kGdt + 16, 0x00cf93000000ffff);
    put_quad(kGdt + 24, 0x00cffb000000ffff);
    put_quad(kGdt + 32, 0x00cff3000000ffff);
    put_quad(kGdt + 40, 0x00affb000000ffff);
    for (const std::uint32_t vector : {6u, 14u}) {
      put_quad(kIdt + 16 * vector, 0x00018e0000080000 | (kHandler & 0xffff));
    }
    CpuState& s = recording_.initial;
    s.model = CpuModel::x86_64;
    s.ram_bytes = 0x400000;
    s.long_mode.emplace();
    const std::vector<std::pair<const char*, std::uint64_t>> registers = {{"cr0", 0x80050033},
                                                                          {"cr3", kTables},
                                                                          {"cr4", 0x620},
                                                                          {"efer", 0xd01},
                                                                          {"rip", kCode},
                                                                          {"rsp", kStack},
                                                                          {"rflags", 2},
                                                                          {"cs", 8},
                                                                          {"cs.limit", ~0u},
                                                                          {"cs.attributes", 0xa09b},
                                                                          {"ss", 16},
                                                                          {"ss.limit", ~0u},
                                                                          {"ss.attributes", 0xc093},
                                                                          {"gdtr.base", kGdt},
                                                                          {"gdtr.limit", 47},
                                                                          {"idtr.base", kIdt},
                                                                          {"idtr.limit", 0xfff}};
    for (const auto& [name, value] : registers) ASSERT_TRUE(set_register(s, name, value)) << name;
  }
  void put(std::uint32_t at, std::initializer_list<int> bytes) {
    for (const int b : bytes) recording_.image.set(PhysAddr{at++}, static_cast<std::uint8_t>(b));
  }
  void put_quad(std::uint32_t at, std::uint64_t value) {
    for (unsigned i = 0; i < 8; ++i) {
      recording_.image.set(PhysAddr{at + i}, static_cast<std::uint8_t>(value >> (8 * i)));
    }
  }
  void set_cpuid(std::uint32_t ecx_of_1) {
    recording_.initial.cpuid = {{0, 1, 0, 0, 0}, {1, 0, 0, ecx_of_1, 0}};
  }
  ReplayReport run(std::uint64_t instructions) {
    ReplayOptions options;
    options.to = instructions;
    Replayer replayer(recording_, nullptr, options);
    const ReplayReport report = replayer.run();
    after_ = replayer.machine().save();
    return report;
  }
  std::uint64_t after(const char* name) const { return get_register(after_, name).value_or(0); }

  Recording recording_;
  CpuState after_;
};

TEST_F(LongModeGuest, AComparisonThatFindsEqualLeavesTheUpperHalfOfRaxAlone) {
  put(kCode, {0x48, 0xb8, 5, 0, 0, 0, 0x44, 0x33, 0x22, 0x11});  // mov rax, 1122334400000005
  put(kCode + 10, {0xc7, 0x04, 0x25, 0, 0, 2, 0, 5, 0, 0, 0});   // mov dword [20000], 5
  put(kCode + 21, {0xb9, 7, 0, 0, 0, 0x0f, 0xb1, 0x0c, 0x25, 0, 0, 2, 0});  // cmpxchg [20000], ecx
  put(kCode + 34, {0x0f, 0xb1, 0x0c, 0x25, 0, 0, 2, 0});                    // again: differs
  run(4);
  EXPECT_EQ(after("rax"), 0x1122334400000005u);
  run(5);
  EXPECT_EQ(after("rax"), 7u);
}

TEST_F(LongModeGuest, AScanThatFindsNoBitLeavesItsDestinationAlone) {
  put(kCode, {0x48, 0x83, 0xca, 0xff, 0x31, 0xc0, 0x0f, 0xbc, 0xd0});  // or rdx, -1; bsf edx, eax
  run(3);
  EXPECT_EQ(after("rdx"), ~std::uint64_t{0});
}

TEST_F(LongModeGuest, APageThatMayNotBeExecutedFaultsWithItsReason) {
  put(kCode, {0xb8, 0x10, 0, 0x20, 0, 0xff, 0xe0});  // jmp to 200010
  put(kHandler, {0x58, 0x5b});                       // pop rax: the error code; pop rbx
  const ReplayReport report = run(4);
  EXPECT_EQ(report.exceptions, 1u);
  EXPECT_EQ(after("rax"), 0x11u);
  EXPECT_EQ(after("rbx"), 0x200010u);
  EXPECT_EQ(after("cr2"), 0x200010u);
}

TEST_F(LongModeGuest, SystemCallsKeepWhatTheyComeFromAndReturnThere) {
  recording_.initial.msrs = {{0xc0000081, std::uint64_t{0x18} << 48 | std::uint64_t{8} << 32},
                             {0xc0000082, kHandler},
                             {0xc0000084, 0x200}};
  set_register(recording_.initial, "rflags", 0x202);
  put(kCode, {0x0f, 0x05, 0x90});
  put(kHandler, {0x90, 0x48, 0x0f, 0x07});  // nop; sysretq
  run(2);
  EXPECT_EQ(after("rcx"), kCode + 2);
  EXPECT_EQ(after("r11"), 0x202u);
  EXPECT_EQ(after("rflags"), 2u);
  run(3);
  EXPECT_EQ(after("rip"), kCode + 2);
  EXPECT_EQ(after("cs"), 0x2bu);
  EXPECT_EQ(after("ss"), 0x23u);
  EXPECT_EQ(after("rflags"), 0x202u);
}

TEST_F(LongModeGuest, InstructionsThatTheProcessorHasAndNobodyExecutesEndTheReplayByName) {
  put(kCode, {0x90, 0xc5, 0xf8, 0x77});  // nop; vzeroupper
  set_cpuid(1u << 28);
  const ReplayReport report = run(3);
  ASSERT_EQ(report.end, ReplayReport::End::diverged);
  EXPECT_EQ(report.divergence->position.instruction, 1u);
  EXPECT_THAT(report.divergence->reason, HasSubstr("an instruction of AVX"));
}

TEST_F(LongModeGuest, TheSameIsUndefinedWhereTheProcessorHasItNot) {
  put(kCode, {0xc5, 0xf8, 0x77});
  set_cpuid(0);
  EXPECT_EQ(run(1).exceptions, 1u);
  // popcnt eax, eax, which the engine would execute
  put(kCode, {0xf3, 0x0f, 0xb8, 0xc0});
  EXPECT_EQ(run(1).exceptions, 1u);
  set_cpuid(1u << 23);
  EXPECT_EQ(run(1).exceptions, 0u);
}

TEST_F(LongModeGuest, FiveLevelsOfPageTablesAreRefusedByName) {
  set_register(recording_.initial, "cr4", 0x1620);
  EXPECT_THAT([&] { run(1); }, ThrowsMessage<UsageError>(HasSubstr("LA57")));
  set_register(recording_.initial, "cr4", 0x620);
  put(kCode, {0xb8, 0x20, 0x16, 0, 0, 0x0f, 0x22, 0xe0});  // mov cr4, eax
  const ReplayReport report = run(2);
  ASSERT_EQ(report.end, ReplayReport::End::diverged);
  EXPECT_THAT(report.divergence->reason, HasSubstr("LA57"));
}

TEST_F(LongModeGuest, ListenersThatTakeAddressesOf32BitsAreRefused) {
  Observer narrow;
  EXPECT_THAT([&] { Replayer(recording_, &narrow, ReplayOptions{}); },
              ThrowsMessage<UsageError>(HasSubstr("can be replayed and verified, but not this")));
}

TEST_F(LongModeGuest, ASnapshotTakesTheWholeOfItBack) {
  put(kCode, {0x49, 0xff, 0xc7, 0xeb, 0xfb});  // inc r15; jmp back
  ReplayOptions options;
  Replayer replayer(recording_, nullptr, options);
  replayer.run_to(20);
  const Replayer::Checkpoint there = replayer.checkpoint();
  replayer.run_to(40);
  const CpuState first = replayer.machine().save();
  replayer.restore(there);
  replayer.run_to(40);
  EXPECT_EQ(replayer.machine().save(), first);
}

}  // namespace
}  // namespace citcat
