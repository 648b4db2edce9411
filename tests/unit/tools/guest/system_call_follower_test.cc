#include "tools/guest/system_call_follower.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "events/machine/cpu_state.h"
#include "tools/guest/process_names.h"

namespace citcat::tools {
namespace {

/// A guest that is what the test says.
class ScriptedGuest final : public Guest {
 public:
  AddressSpaceId address_space() const override { return cr3; }
  std::uint64_t gpr(int number) const override {
    return registers[static_cast<std::size_t>(number)];
  }
  std::uint64_t ip() const override { return instruction_pointer; }
  bool in_64_bit_mode() const override { return wide; }
  bool runs_program() const override { return user; }
  std::optional<std::uint8_t> byte(LinearAddr at) const override {
    const auto found = memory.find({cr3, at.value});
    return found == memory.end() ? std::nullopt : std::optional(found->second);
  }

  void set(int number, std::uint64_t value) { registers[static_cast<std::size_t>(number)] = value; }
  void put(std::uint64_t at, const std::string& bytes) {
    for (const char c : bytes) memory[{cr3, at++}] = static_cast<std::uint8_t>(c);
  }
  void put_text(std::uint64_t at, const std::string& text) { put(at, text + '\0'); }
  void put_quad(std::uint64_t at, std::uint64_t value) {
    for (int i = 0; i < 8; ++i) memory[{cr3, at++}] = static_cast<std::uint8_t>(value >> (8 * i));
  }
  void put_dword(std::uint64_t at, std::uint32_t value) {
    for (int i = 0; i < 4; ++i) memory[{cr3, at++}] = static_cast<std::uint8_t>(value >> (8 * i));
  }

  AddressSpaceId cr3 = 0x1000;
  std::uint64_t instruction_pointer = 0x8048000;
  bool user = true, wide = false;
  std::array<std::uint64_t, 16> registers{};
  std::map<std::pair<AddressSpaceId, std::uint64_t>, std::uint8_t> memory;
};

/// What Linux and programs do, in its order.
class SystemCalls : public ::testing::Test, public SystemCallListener {
 protected:
  static constexpr std::uint32_t kStack = 0xbffff000, kText = 0x8049000;

  SystemCalls() {
    follower_.watch(guest_);
    names_.set_follower(follower_);
    guest_.set(kEsp, kStack);
  }
  void began(const SystemCall& call) override { names_.began(call); }
  void ended(const SystemCall& call) override {
    log_.push_back(system_call_text(call) + " = " + result_text(call));
  }
  void forked(AddressSpaceId parent, AddressSpaceId child, Position now) override {
    names_.forked(parent, child, now);
  }
  void executed(AddressSpaceId space, const std::string& path, Position now) override {
    names_.executed(space, path, now);
  }

  void renamed(AddressSpaceId space, const std::string& name, Position now) override {
    names_.renamed(space, name, now);
  }

  Position now() { return {++instruction_, 0}; }
  void call_with(std::uint32_t number, std::array<std::uint32_t, 3> arguments) {
    guest_.set(kEax, number);
    guest_.set(kEbx, arguments[0]);
    guest_.set(kEcx, arguments[1]);
    guest_.set(kEdx, arguments[2]);
  }
  /// INT 80h.
  void call(std::uint32_t number, std::array<std::uint32_t, 3> arguments = {}) {
    call_with(number, arguments);
    DeliveredEvent event;
    event.kind = DeliveredEvent::Kind::software;
    event.vector = 0x80;
    follower_.delivered(event, now());
    guest_.user = false;
  }
  void interrupt() {
    DeliveredEvent event;
    event.kind = DeliveredEvent::Kind::external;
    event.vector = 0x30;
    follower_.delivered(event, now());
    guest_.user = false;
  }
  /// IRET to the program, at this place.
  void go_back(std::uint32_t ip, std::uint32_t eax, std::uint32_t esp = kStack) {
    guest_.user = true;
    guest_.instruction_pointer = ip;
    guest_.set(kEax, eax);
    guest_.set(kEsp, esp);
    follower_.returned(now());
  }
  void switch_to(std::uint32_t cr3) {
    guest_.cr3 = cr3;
    names_.address_space(cr3);
  }
  /// The stack of a program that begins.
  void lay_stack(std::uint32_t esp, const std::string& path) {
    guest_.put_text(0xbfffff00, path);
    const std::array<std::uint32_t, 9> words{1, 0xbfffff00, 0,  0xbfffff00, 0,
                                             6, 4096,       31, 0xbfffff00};
    for (const std::uint32_t w : words) {
      guest_.put_dword(esp, w);
      esp += 4;
    }
    guest_.put_dword(esp, 0);
  }
  void begin_program(std::uint32_t cr3, const std::string& path) {
    switch_to(cr3);
    lay_stack(0xbffffe00, path);
    for (int r = 0; r < 8; ++r) guest_.set(r, 0);
    go_back(0x8048100, 0, 0xbffffe00);
  }

  ScriptedGuest guest_;
  ProcessNames names_;
  SystemCallFollower follower_{*this};
  std::vector<std::string> log_;
  std::uint64_t instruction_ = 0;
};

using Log = std::vector<std::string>;

TEST_F(SystemCalls, ACallHasItsTextsAndItsResult) {
  guest_.put_text(kText, "/etc/passwd");
  call(5, {kText, 0x8000, 0});
  go_back(0x8048002, 3);
  EXPECT_EQ(log_, Log{"open(\"/etc/passwd\", 0x8000, 0) = 3"});
}

TEST_F(SystemCalls, WhatWasReadIsKnownAtTheEndAndErrorsHaveNames) {
  call(3, {0, kText, 100});
  guest_.put(kText, "one\ntwo");
  go_back(0x8048002, 4);
  guest_.instruction_pointer = 0x8048000;
  call(3, {0, kText, 100});
  go_back(0x8048002, 0u - 11);
  EXPECT_EQ(log_, (Log{"read(0, \"one\\n\", 100) = 4", "read(0, 0x8049000, 100) = -1 EAGAIN"}));
}

TEST_F(SystemCalls, ATextWhosePageComesInLaterIsReadThen) {
  call(5, {kText, 0, 0});
  guest_.put_text(kText, "late");
  follower_.returned(now());  // of the page fault, within the kernel
  guest_.memory.clear();
  go_back(0x8048002, 0u - 2);
  EXPECT_EQ(log_, Log{"open(\"late\", 0, 0) = -1 ENOENT"});
}

TEST_F(SystemCalls, OtherProcessesAndInterruptsInBetweenDoNotMatter) {
  call(20);
  switch_to(0x2000);
  go_back(0x8050000, 5);  // to where another process was interrupted before
  interrupt();
  switch_to(0x1000);
  go_back(0x8048002, 77);
  EXPECT_EQ(log_, Log{"getpid() = 77"});
}

TEST_F(SystemCalls, AnInterruptedProgramThatGoesOnEndsNoCall) {
  call(190);
  go_back(0x8048002, 0);  // the child, in its parent's memory
  interrupt();
  go_back(0x8048002, 0);  // at the very place behind the call
  EXPECT_TRUE(log_.empty());
  call(1, {0, 0, 0});
  go_back(0x8048002, 34);  // the parent
  EXPECT_EQ(log_, (Log{"vfork() = ?", "exit(0) = ?"}))
      << "a child that calls from the place where its parent waits takes its place";
}

TEST_F(SystemCalls, AProgramOfAChildOfVforkLeavesItsParentWaiting) {
  call(190);
  go_back(0x8048002, 0);
  guest_.put_text(kText, "/bin/ls");
  guest_.set(kEsp, kStack - 16);
  call(11, {kText, 0, 0});
  begin_program(0x2000, "/bin/ls");
  EXPECT_EQ(names_.name(0x2000), "ls");
  EXPECT_EQ(names_.name(0x1000), std::nullopt);
  interrupt();
  switch_to(0x1000);
  go_back(0x8048002, 34);
  EXPECT_EQ(log_, (Log{"execve(\"/bin/ls\", NULL, NULL) = 0", "vfork() = 34"}));
}

TEST_F(SystemCalls, AChildOfForkHasItsParentsNameUntilItExecutesAnother) {
  begin_program(0x1000, "/bin/sh");
  guest_.set(kEsp, kStack);
  guest_.instruction_pointer = 0x8048000;
  call(2);
  switch_to(0x2000);
  go_back(0x8048002, 0);
  EXPECT_EQ(names_.name(0x2000), "sh");
  guest_.put_text(kText, "/usr/bin/sort");
  guest_.put_dword(kText + 100, kText);
  guest_.put_dword(kText + 104, 0);
  guest_.instruction_pointer = 0x8048000;
  call(11, {kText, kText + 100, 0});
  begin_program(0x3000, "/usr/bin/sort");
  EXPECT_EQ(names_.name(0x3000), "sort");
  interrupt();
  switch_to(0x1000);
  go_back(0x8048002, 12);
  EXPECT_EQ(log_, (Log{"execve(\"/usr/bin/sort\", [\"/usr/bin/sort\"], NULL) = 0", "fork() = 12"}));
}

TEST_F(SystemCalls, OfTwoThatExecuteAtOnceEachGetsItsOwnEnd) {
  guest_.put_text(kText, "/bin/a");
  call(11, {kText, 0, 0});
  switch_to(0x2000);
  guest_.user = true;
  guest_.put_text(kText, "/bin/b");
  call(11, {kText, 0, 0});
  begin_program(0x3000, "/bin/a");
  EXPECT_EQ(log_, Log{"execve(\"/bin/a\", NULL, NULL) = 0"});
  begin_program(0x4000, "/bin/b");
  EXPECT_EQ(log_.back(), "execve(\"/bin/b\", NULL, NULL) = 0");
}

TEST_F(SystemCalls, ASignalsHandlerComesBackThroughSigreturn) {
  call(29);
  go_back(0x8060000, 0, kStack - 200);  // the handler
  guest_.instruction_pointer = 0x8060100;
  call(119);
  go_back(0x8048002, 0u - 4);
  EXPECT_EQ(log_, (Log{"sigreturn() = ?", "pause() = -1 EINTR"}));
}

TEST_F(SystemCalls, ACallThatIsMadeAnewSaysSo) {
  call(3, {0, kText, 1});
  go_back(0x8048000, 3);
  call(3, {0, kText, 1});
  guest_.put(kText, "x");
  go_back(0x8048002, 1);
  EXPECT_EQ(log_, (Log{"read(0, 0x8049000, 1) = ? (restarted)", "read(0, \"x\", 1) = 1"}));
}

class FastSystemCalls : public SystemCalls {
 protected:
  /// mmap2 as arch/x86/entry/vdso/vdso32/system_call.S makes it.
  void map_memory() {
    guest_.instruction_pointer = 0xb7ffe555;
    guest_.set(kEbp, kStack);
    call_with(192, {0, 4096, 3});
    guest_.set(kEsi, 0x22);
    guest_.set(kEdi, 0xffffffff);
    follower_.fast_call(now());
    guest_.user = false;
    guest_.set(kEax, 0xb7000000);
    guest_.set(kEcx, kStack);
    guest_.set(kEdx, 0xb7ffe559);
    follower_.fast_returned(now());
  }
};

TEST_F(FastSystemCalls, SysenterGoesBackBySysexitAndHasItsSixthArgumentOnTheStack) {
  guest_.put_dword(kStack, 0x55);
  map_memory();
  EXPECT_EQ(log_, Log{"mmap2(NULL, 4096, 0x3, 0x22, -1, 85) = 0xb7000000"});
}

TEST_F(FastSystemCalls, AnArgumentThatNoEvidenceTellsIsAQuestionMark) {
  map_memory();
  EXPECT_EQ(log_, Log{"mmap2(NULL, 4096, 0x3, 0x22, -1, ?) = 0xb7000000"});
}

TEST_F(SystemCalls, ANameGoesWithTheProcessWhenItsPageTablesAreAnothers) {
  begin_program(0x1000, "/bin/true");
  call(252, {0, 0, 0});
  EXPECT_EQ(names_.name(0x1000), "true");
  switch_to(0x2000);
  switch_to(0x1000);
  EXPECT_EQ(names_.name(0x1000), std::nullopt);
}

TEST_F(SystemCalls, AProcessMayNameItself) {
  guest_.put_text(kText, "sort");
  call(172, {15, kText, 0});
  go_back(0x8048002, 0);
  EXPECT_EQ(names_.name(0x1000), "sort");
  EXPECT_EQ(log_, Log{"prctl(15, \"sort\", 0, 0, 0) = 0"});
}

TEST_F(SystemCalls, WhatHasNotEndedIsPending) {
  call(162, {kText, 0, 0});
  ASSERT_EQ(follower_.pending().size(), 1u);
  EXPECT_EQ(system_call_text(follower_.pending()[0]), "nanosleep(0x8049000, NULL)");
}

/// Linux on amd64: SYSCALL, with SYSRET or IRETQ back.
class WideSystemCalls : public SystemCalls {
 protected:
  static constexpr std::uint64_t kWideStack = 0x7ffe'1234'5678, kCode = 0x5555'0000'1000,
                                 kWideText = 0x5555'0000'4000;
  WideSystemCalls() {
    guest_.wide = true;
    guest_.set(kEsp, kWideStack);
  }
  void call(std::uint64_t number, std::array<std::uint64_t, 6> arguments) {
    guest_.instruction_pointer = kCode;
    guest_.set(kEax, number);
    constexpr std::array<int, 6> kOrder{kEdi, kEsi, kEdx, 10, 8, 9};
    for (std::size_t i = 0; i < 6; ++i) guest_.set(kOrder[i], arguments[i]);
    follower_.fast_call(now(), true);
    guest_.user = false;
    guest_.instruction_pointer = 0xffffffff'81c00000;
  }
  void sysret(std::uint64_t result, std::uint64_t to = kCode + 2) {
    guest_.set(kEax, result);
    guest_.set(kEcx, to);
    follower_.fast_returned(now(), true);
    guest_.user = true;
  }
};

TEST_F(WideSystemCalls, HaveArgumentsTextsAndResultsOf64Bits) {
  guest_.put_text(kWideText, "/etc/passwd");
  call(257, {0xffffff9c, kWideText, 0x80000, 0, 0, 0});
  sysret(3);
  call(9, {0, 4096, 3, 0x22, ~std::uint64_t{0}, 0});
  sysret(0x7f00'0000'1000);
  call(2, {kWideText, 0, 0, 0, 0, 0});
  sysret(static_cast<std::uint64_t>(-2));
  call(8, {3, static_cast<std::uint64_t>(-5), 2, 0, 0, 0});
  sysret(0x1'0000'0000);
  EXPECT_EQ(log_, (Log{"openat(-100, \"/etc/passwd\", 0x80000, 0) = 3",
                       "mmap(NULL, 4096, 0x3, 0x22, -1, 0) = 0x7f0000001000",
                       "open(\"/etc/passwd\", 0, 0) = -1 ENOENT", "lseek(3, -5, 2) = 4294967296"}));
}

TEST_F(WideSystemCalls, AreMadeAnewWhereTheKernelGoesBackToThem) {
  call(35, {kWideText, 0, 0, 0, 0, 0});
  sysret(0, kCode);
  EXPECT_EQ(log_, Log{"nanosleep(0x555500004000, NULL) = ? (restarted)"});
}

TEST_F(WideSystemCalls, AProgramBeginsWithWordsOfEightBytesOnItsStack) {
  guest_.put_text(kWideText, "/bin/sh");
  call(59, {kWideText, 0, 0, 0, 0, 0});
  switch_to(0x3000);
  guest_.put_text(kWideText, "/bin/sh");
  std::uint64_t at = kWideStack;
  for (const std::uint64_t w :
       {std::uint64_t{1}, kWideText, std::uint64_t{0}, kWideText, std::uint64_t{0},
        std::uint64_t{31}, kWideText, std::uint64_t{0}, std::uint64_t{0}}) {
    guest_.put_quad(at, w);
    at += 8;
  }
  for (int r = 0; r < 16; ++r) guest_.set(r, 0);
  guest_.set(kEsp, kWideStack);
  guest_.user = true;
  guest_.instruction_pointer = kCode;
  follower_.returned(now());
  EXPECT_EQ(names_.name(0x3000), "sh");
}

TEST_F(WideSystemCalls, IsolatedTablesAreOneProcess) {
  names_.executed(0x5000, "/bin/cat", now());
  EXPECT_EQ(names_.name(0x4000), std::nullopt);
  names_.join_tables();
  EXPECT_EQ(names_.name(0x4000), "cat");
  EXPECT_EQ(names_.name(0x5000), "cat");
}

}  // namespace
}  // namespace citcat::tools
