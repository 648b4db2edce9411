// Isolated page tables: what shows that a program runs with one table of two, where the kernel goes
// back to it, and whether a recording begins so.

#include "replay/machine/isolated_tables.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "replay/session/first_entry.h"
#include "unit/replay/machine/long_mode_guest.h"

namespace citcat {
namespace {

constexpr std::uint64_t kNoExecute = std::uint64_t{1} << 63;

/// A program with the table of the guest, which is the upper one of a pair; the kernel's lies at 0.
class IsolatedTables : public LongModeGuest {
 protected:
  static constexpr std::uint32_t kStar = 0xc0000081, kLstar = 0xc0000082;

  void SetUp() override {
    LongModeGuest::SetUp();
    begin_in_program();
    put_quad(0, kTables + 0x1007);
  }
  void set(const char* name, std::uint64_t value) {
    ASSERT_TRUE(set_register(recording_.initial, name, value)) << name;
  }
  void begin_in_program() {
    set("cs", 0x2b);
    set("cs.attributes", 0xa0fb);
    set("ss", 0x23);
    set("ss.attributes", 0xc0f3);
    set("tr", 0x30);
    set("tr.attributes", 0x8b);
    set("tr.base", kData);
    set("tr.limit", 0x67);
    put_quad(kData + 4, kStack);
    recording_.initial.msrs = {{kStar, std::uint64_t{8} << 32}, {kLstar, kHandler}};
  }
  void begin_in_kernel() {
    set("cs", 8);
    set("cs.attributes", 0xa09b);
    set("ss", 16);
    set("ss.attributes", 0xc093);
  }
  /// `count` NOPs, and then a load of CR3 with `table`.
  void put_handler(std::uint32_t count, int table) {
    for (std::uint32_t i = 0; i < count; ++i) put(kHandler + i, {0x90});
    put(kHandler + count, {0xb8, 0, table, 0, 0, 0x0f, 0x22, 0xd8, 0xeb, 0xfe});
  }
  bool program_runs_isolated() {
    ReplayOptions options;
    options.to = 1;
    Replayer replayer(recording_, nullptr, options);
    replayer.run();
    return runs_with_isolated_tables(replayer.machine());
  }
  /// `code` follows a load of CR3.
  bool leaves(std::initializer_list<int> code) {
    put(kCode + 3, code);
    Replayer replayer(recording_, nullptr, {});
    return is_leaving_kernel(replayer.machine(),
                             {LinearAddr{kCode + 3}, LinearAddr{kCode}, PhysAddr{kCode}});
  }
};

TEST_F(IsolatedTables, TheKernelsTableIsThatWhichForbidsItToExecuteTheProgram) {
  put_quad(0, (kTables + 0x1007) | kNoExecute);
  EXPECT_TRUE(program_runs_isolated());
  put_quad(0, kTables + 0x1007);
  EXPECT_FALSE(program_runs_isolated()) << "nothing is forbidden";
  put_quad(0, (kTables + 0x3007) | kNoExecute);
  EXPECT_FALSE(program_runs_isolated()) << "the table of another process";
  put_quad(0, (kTables + 0x1007) | kNoExecute);
  begin_in_kernel();
  EXPECT_FALSE(program_runs_isolated()) << "no program runs";
}

TEST_F(IsolatedTables, TheKernelLeavesWhereItsCodeGoesStraightToAReturn) {
  const int to_iretq = 2;
  EXPECT_TRUE(leaves({0x58, 0x5f, 0x0f, 0x01, 0xf8, 0x0f, 0x00, 0x6c, 0x24, 0xf8, 0xeb, to_iretq,
                      0x90, 0x90, 0x48, 0xcf}));  // pop; pop; swapgs; verw; jmp; iretq
  EXPECT_TRUE(leaves({0x5c, 0x0f, 0x01, 0xf8, 0x48, 0x0f, 0x07}));  // pop rsp; swapgs; sysretq
  EXPECT_FALSE(leaves({0x58, 0xe8, 0, 0, 0, 0, 0x48, 0xcf})) << "a call";
  EXPECT_FALSE(leaves({0x58, 0xff, 0xe0, 0x48, 0xcf})) << "a jump to anywhere";
}

TEST_F(IsolatedTables, ASystemCallSoonLoadsTheKernelsTable) {
  put(kCode, {0x90, 0x0f, 0x05});  // nop; syscall
  put_handler(3, 0);
  EXPECT_TRUE(begins_with_isolated_tables(recording_));
  put_handler(kMostToLoad, 0);
  EXPECT_FALSE(begins_with_isolated_tables(recording_)) << "only after a while";
  put_handler(3, 0x40);
  put_quad(0x4000, kTables + 0x1007);
  EXPECT_FALSE(begins_with_isolated_tables(recording_)) << "the table of another process";
}

TEST_F(IsolatedTables, AnExceptionSoonLoadsTheKernelsTable) {
  put(kCode, {0x90, 0x0f, 0x0b});  // nop; ud2
  put_handler(30, 0);
  EXPECT_TRUE(begins_with_isolated_tables(recording_));
}

TEST_F(IsolatedTables, ABeginningInTheKernelOrWithALowerTableRevealsNothing) {
  put(kCode, {0x90, 0x0f, 0x05});
  put_handler(3, 0);
  begin_in_kernel();
  EXPECT_FALSE(begins_with_isolated_tables(recording_));
  begin_in_program();
  put_quad(0x4000, kTables + 0x1007);
  set("cr3", 0x4000);
  EXPECT_FALSE(begins_with_isolated_tables(recording_));
}

}  // namespace
}  // namespace citcat
