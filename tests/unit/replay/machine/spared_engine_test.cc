// What the fast tier leaves and a unit makes in its place: the engine has nothing to translate for
// it, and with everything on the engine of record the outcome is the same.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "unit/replay/machine/both_paths.h"
#include "unit/replay/machine/ring3.h"

namespace citcat {
namespace {

using test::PagedGuest;

class SparedEngine : public test::Ring3 {
 protected:
  static constexpr std::uint32_t kUserCode = 0x6000, kPort = 0x61;
  static constexpr int kCode0 = 8, kData0 = 0x10;

  /// Begins at level 0.
  SparedEngine() {
    CpuState& s = state();
    s.segment.fill({kData0, 0, 0xffffffff, 0xc093, false});
    s.segment[kCs] = {kCode0, 0, 0xffffffff, 0xc09b, false};
    s.gpr[kEsp] = kStack;
  }
  void add(std::initializer_list<int> bytes) {
    guest.put(end_, bytes);
    end_ += static_cast<std::uint32_t>(bytes.size());
    ++instructions_;
  }
  void push(std::uint32_t value) {
    guest.put_word(end_ + 1, value);
    add({0x68});
    end_ += 4;
  }
  void run_to(std::uint32_t eip) {
    run(instructions_);
    EXPECT_EQ(cpu.eip, eip);
    EXPECT_TRUE(deliveries.list.empty());
    if (GetParam() == ExecutionPath::blocks) {
      EXPECT_EQ(stats.engine_runs, 0U);
    } else {
      EXPECT_NE(stats.engine_runs, 0U);
    }
  }
  std::uint32_t end_ = kCode;
  std::uint64_t instructions_ = 0;
};

TEST_P(SparedEngine, LoadsSegments) {
  push(kData32);
  add({0x07});              // pop es
  add({0x8e, 0xe8});        // mov gs,eax
  add({0x6a, kData32});     // push
  add({0x66, 0x0f, 0xa1});  // pop fs, of a word
  state().gpr[kEax] = 0xabcd0000 | kData0;
  run_to(end_);
  EXPECT_EQ(cpu.segment[kEs].selector, kData32);
  EXPECT_EQ(cpu.segment[kFs].selector, kData32);
  EXPECT_EQ(cpu.segment[kGs].selector, kData0);
  EXPECT_EQ(cpu.gpr[kEsp], kStack - 2);
}

TEST_P(SparedEngine, ReadsAndWritesPorts) {
  IoRead read;
  read.port = kPort;
  read.size = 1;
  read.value = 0xa5;
  guest.recording.io_reads.push_back(read);
  state().gpr[kEax] = 0x11223344;
  add({0xe4, kPort});  // in al,61
  add({0xe6, kPort});  // out 61,al
  run_to(end_);
  EXPECT_EQ(cpu.gpr[kEax], 0x112233a5U);
}

TEST_P(SparedEngine, ReloadsTheDirectory) {
  add({0x0f, 0x20, 0xdb});  // mov ebx,cr3
  add({0x0f, 0x22, 0xdb});  // mov cr3,ebx
  run_to(end_);
  EXPECT_EQ(cpu.gpr[kEbx], PagedGuest::kDirectory);
}

TEST_P(SparedEngine, ComparesAndExchangesEightBytes) {
  CpuState& s = state();
  s.gpr[kEax] = 0x11111111;
  s.gpr[kEdx] = 0x22222222;
  s.gpr[kEbx] = 0x33333333;
  s.gpr[kEcx] = 0x44444444;
  guest.put_word(kData, 0x11111111);
  guest.put_word(kData + 4, 0x22222222);
  guest.put_word(kData + 8, 0x55555555);
  guest.put_word(kData + 12, 0x66666666);
  add({0xf0, 0x0f, 0xc7, 0x0f});  // lock cmpxchg8b [edi]: equal
  add({0x9c});                    // pushf
  add({0x0f, 0xc7, 0x4f, 0x08});  // cmpxchg8b [edi+8]: not equal
  add({0x8b, 0x2f});              // mov ebp,[edi]
  add({0x8b, 0x77, 0x04});        // mov esi,[edi+4]
  add({0x5f});                    // pop edi
  run_to(end_);
  EXPECT_EQ(cpu.gpr[kEbp], 0x33333333U);
  EXPECT_EQ(cpu.gpr[kEsi], 0x44444444U);
  EXPECT_EQ(cpu.gpr[kEax], 0x55555555U);
  EXPECT_EQ(cpu.gpr[kEdx], 0x66666666U);
  constexpr std::uint32_t kZero = 1u << 6;
  EXPECT_EQ(cpu.gpr[kEdi] & kZero, kZero);
  EXPECT_EQ(cpu.eflags & kZero, 0U);
}

TEST_P(SparedEngine, TakesNoNoticeOfRepeatWhereItMeansNothing) {
  state().gpr[kEbx] = 0x5000;
  state().cpuid = {{0, 1, 0, 0, 0}};  // without TZCNT
  state().cpuid.push_back({0x80000000, 0x80000000, 0, 0, 0});
  add({0xf3, 0x0f, 0xbc, 0xc3});  // rep bsf eax,ebx: what TZCNT is on later processors
  add({0xf2, 0x89, 0xc1});        // repne mov ecx,eax
  run_to(end_);
  EXPECT_EQ(cpu.gpr[kEcx], 12U);
}

TEST_P(SparedEngine, ReturnsFromInterruptsWithinALevel) {
  push(0x200cd7);  // ID, PF, SF, ZF, AF, CF; OF
  push(kCode0);
  push(kUserCode);
  add({0xcf});
  run_to(kUserCode);
  EXPECT_EQ(cpu.gpr[kEsp], kStack);
  EXPECT_EQ(cpu.eflags, 0x200cd7U);
}

TEST_P(SparedEngine, ReturnsFromInterruptsToAnOuterLevel) {
  push(kData32);
  push(kStack - 0x100);
  push(0x3202);  // IOPL 3, IF
  push(kCode32);
  push(kUserCode);
  add({0xcf});
  guest.put(kUserCode, {0x90});
  ++instructions_;
  run_to(kUserCode + 1);
  EXPECT_EQ(cpu.segment[kCs].selector, kCode32);
  EXPECT_EQ(cpu.segment[kSs].selector, kData32);
  EXPECT_EQ(cpu.segment[kDs].selector, 0) << "level 3 may not use that of level 0";
  EXPECT_EQ(cpu.gpr[kEsp], kStack - 0x100);
  EXPECT_EQ(cpu.eflags, 0x3202U);
}

INSTANTIATE_TEST_SUITE_P(Paths, SparedEngine, both_paths(), path_name);

}  // namespace
}  // namespace citcat
