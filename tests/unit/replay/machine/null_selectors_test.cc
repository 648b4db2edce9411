// What makes a selector null, and what becomes of the base behind it: a test for each row of the
// table in docs/fidelity.md ("Null selectors").

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "replay/session/replayer.h"
#include "unit/replay/machine/both_paths.h"
#include "unit/replay/machine/long_mode_guest.h"

namespace citcat {
namespace {

constexpr std::uint64_t kFsBase = 0x1111100002000, kGsBase = 0x2222200003000;

enum class Maker { intel, amd, newer_amd, saying_amd, qemu };

class NullSelectors : public LongModeGuest, public testing::WithParamInterface<ExecutionPath> {
 protected:
  static constexpr int kPushes = 5;  ///< of leave_level_0(), and then the return

  void SetUp() override {
    LongModeGuest::SetUp();
    for (const char* segment : {"ds", "es", "fs", "gs"}) load(segment, 16, 0xc093);
    set("fs.base", kFsBase);
    set("gs.base", kGsBase);
    put(kCode + 0x80, {0x90});
    made_by(Maker::intel);
  }
  void set(const std::string& name, std::uint64_t value) {
    ASSERT_TRUE(set_register(recording_.initial, name, value)) << name;
  }
  void load(const std::string& segment, std::uint16_t selector, std::uint16_t attributes) {
    set(segment, selector);
    set(segment + ".limit", ~0u);
    set(segment + ".attributes", attributes);
  }
  void made_by(Maker maker) {
    constexpr std::uint32_t kZen1 = 0x00800f11, kZen4 = 0x00a10f11, kHypervisor = 1u << 31;
    const std::uint32_t signature = maker == Maker::newer_amd ? kZen4 : kZen1;
    const std::uint32_t vendor = maker == Maker::intel ? 0x756e6547 : 0x68747541;
    recording_.initial.cpuid = {{0, 1, vendor, 0, 0},
                                {1, signature, 0, maker == Maker::qemu ? kHypervisor : 0, 0}};
    if (maker == Maker::saying_amd) {
      recording_.initial.cpuid.push_back({0x80000021, 1u << 6, 0, 0, 0});
    }
  }
  /// Pushes SS:RSP, FLAGS where IRET wants them, CS and where to go, then the return's bytes.
  void leave_level_0(int code, const std::vector<int>& way, bool flags) {
    constexpr int kStackHigh = kStack >> 16, kCodeHigh = kCode >> 16;
    put(kCode, {0x6a, 0x23, 0x68, 0, 0, kStackHigh, 0});
    put(kCode + 7, {0x6a, 0x02});
    if (!flags) put(kCode + 7, {0x66, 0x90});
    put(kCode + 9, {0x6a, code, 0x68, 0x80, 0, kCodeHigh, 0});
    put_bytes(kCode + 16, way);
  }
  ReplayReport go(std::uint64_t instructions) {
    ReplayOptions options;
    options.to = instructions;
    options.path = GetParam();
    Replayer replayer(recording_, nullptr, options);
    const ReplayReport report = replayer.run();
    after_ = replayer.machine().save();
    return report;
  }
  void put_bytes(std::uint32_t at, const std::vector<int>& bytes) {
    for (const int b : bytes) put(at++, {b});
  }
  static std::string base_of(const char* segment) { return std::string(segment) + ".base"; }
  /// The selectors are null and the bases are those before.
  void expect_dropped() {
    EXPECT_EQ(after("cs") & 3, 3u);
    EXPECT_EQ(after("rip"), kCode + 0x80);
    for (const char* segment : {"ds", "es", "fs", "gs"}) EXPECT_EQ(after(segment), 0u) << segment;
    EXPECT_EQ(after("fs.base"), kFsBase);
    EXPECT_EQ(after("gs.base"), kGsBase);
  }
  /// Code of 32 bits outside long mode.
  void begin_without_long_mode() {
    begin_in_protected_mode();
    set("fs.base", static_cast<std::uint32_t>(kFsBase));
    set("gs.base", static_cast<std::uint32_t>(kGsBase));
    load("tr", 0x30, 0x8b);
    set("tr.base", kData);
    set("tr.limit", 0x67);
    put_quad(kData + 4, std::uint64_t{16} << 32 | kStack);
  }
  void expect_dropped_without_long_mode() {
    for (const char* segment : {"ds", "es", "fs", "gs"}) EXPECT_EQ(after(segment), 0u) << segment;
    EXPECT_EQ(after("fs.base"), static_cast<std::uint32_t>(kFsBase));
    EXPECT_EQ(after("gs.base"), static_cast<std::uint32_t>(kGsBase));
  }
};

INSTANTIATE_TEST_SUITE_P(Paths, NullSelectors, both_paths(), path_name);

// ---------------------------------------------------------------------------------------------
// Returns to an outer level

TEST_P(NullSelectors, AnInterruptReturnOutwardLeavesTheBases) {
  leave_level_0(0x2b, {0x48, 0xcf}, true);
  for (const Maker maker : {Maker::intel, Maker::amd, Maker::newer_amd, Maker::qemu}) {
    made_by(maker);
    EXPECT_EQ(go(kPushes + 1).exceptions, 0u);
    expect_dropped();
  }
}

TEST_P(NullSelectors, AFarReturnOutwardLeavesThem) {
  leave_level_0(0x2b, {0x48, 0xcb}, false);
  for (const Maker maker : {Maker::intel, Maker::amd, Maker::qemu}) {
    made_by(maker);
    EXPECT_EQ(go(kPushes + 1).exceptions, 0u);
    expect_dropped();
  }
}

TEST_P(NullSelectors, AReturnToCompatibilityModeLeavesThem) {
  leave_level_0(0x1b, {0x48, 0xcf}, true);
  EXPECT_EQ(go(kPushes + 1).exceptions, 0u);
  expect_dropped();
}

TEST_P(NullSelectors, TheBaseThatIsLeftIsUsed) {
  set("fs.base", kData);
  put(kData, {0x44, 0x33, 0x22, 0x11});
  leave_level_0(0x2b, {0x48, 0xcf}, true);
  put(kCode + 0x80, {0x64, 0x8b, 0x04, 0x25, 0, 0, 0, 0});  // mov eax, fs:[0]
  EXPECT_EQ(go(kPushes + 2).exceptions, 0u);
  EXPECT_EQ(after("rax"), 0x11223344u);
}

TEST_P(NullSelectors, InCompatibilityModeANullSegmentCannotBeUsed) {
  set("fs.base", kData);
  load("tr", 0x30, 0x8b);
  set("tr.base", kData + 0x100);
  set("tr.limit", 0x67);
  put_quad(kData + 0x104, kStack);
  leave_level_0(0x1b, {0x48, 0xcf}, true);
  put(kCode + 0x80, {0x64, 0xa1, 0, 0, 0, 0});  // mov eax, fs:[0]
  EXPECT_EQ(go(kPushes + 2).exceptions, 1u);
}

TEST_P(NullSelectors, AReturnLeavesWhatTheOuterLevelMayUse) {
  load("fs", 0x23, 0xcff3);
  load("gs", 0x18, 0xcf9f);  // conforming code
  leave_level_0(0x2b, {0x48, 0xcf}, true);
  EXPECT_EQ(go(kPushes + 1).exceptions, 0u);
  EXPECT_EQ(after("fs"), 0x23u);
  EXPECT_EQ(after("gs"), 0x18u);
  EXPECT_EQ(after("ds"), 0u);
}

TEST_P(NullSelectors, AReturnWithinTheLevelMakesNoneNull) {
  leave_level_0(8, {0x48, 0xcf}, true);
  put(kCode, {0x6a, 0x10});
  EXPECT_EQ(go(kPushes + 1).exceptions, 0u);
  for (const char* segment : {"ds", "es", "fs", "gs"}) EXPECT_EQ(after(segment), 16u) << segment;
}

TEST_P(NullSelectors, NullSelectorsLoseTheirLevelOutward) {
  set("ds.attributes", 0x10000);
  for (const char* segment : {"ds", "fs", "gs"}) {
    set(segment, 3);
    set(std::string(segment) + ".attributes", 0x10000);
  }
  leave_level_0(0x2b, {0x48, 0xcf}, true);
  for (const Maker maker : {Maker::intel, Maker::newer_amd}) {
    made_by(maker);
    EXPECT_EQ(go(kPushes + 1).exceptions, 0u);
    expect_dropped();
  }
  made_by(Maker::qemu);
  EXPECT_EQ(go(kPushes + 1).exceptions, 0u);
  EXPECT_EQ(after("ds"), 0u);
  EXPECT_EQ(after("fs"), 3u);
  EXPECT_EQ(after("gs"), 3u);
}

TEST_P(NullSelectors, OutsideLongModeReturnsOutwardLeaveTheBasesToo) {
  begin_without_long_mode();
  leave_level_0(0x1b, {0xcf}, true);
  EXPECT_EQ(go(kPushes + 1).exceptions, 0u);
  expect_dropped_without_long_mode();
  leave_level_0(0x1b, {0xcb}, false);
  EXPECT_EQ(go(kPushes + 1).exceptions, 0u);
  expect_dropped_without_long_mode();
  for (const char* segment : {"ds", "fs", "gs"}) {
    set(segment, 2);
    set(std::string(segment) + ".attributes", 0x10000);
  }
  EXPECT_EQ(go(kPushes + 1).exceptions, 0u);
  expect_dropped_without_long_mode();
}

// ---------------------------------------------------------------------------------------------
// Loads of a null selector

/// Each loads null into FS or GS: from AX = 0, the stack, or zeroes at kData.
const std::vector<std::pair<const char*, std::vector<int>>> kNullLoads = {
    {"fs", {0x8e, 0xe0}},                               // mov fs, eax
    {"gs", {0x8e, 0xe8}},                               // mov gs, eax
    {"gs", {0x8e, 0x2c, 0x25, 0, 0, 2, 0}},             // mov gs, [kData]
    {"fs", {0x0f, 0xa1}},                               // pop fs
    {"gs", {0x0f, 0xa9}},                               // pop gs
    {"fs", {0x0f, 0xb4, 0x0c, 0x25, 0, 0, 2, 0}},       // lfs ecx, [kData]
    {"gs", {0x48, 0x0f, 0xb5, 0x0c, 0x25, 0, 0, 2, 0}}  // lgs rcx, [kData]
};

TEST_P(NullSelectors, LoadsOfANullSelectorClearTheBase) {
  for (const Maker maker : {Maker::intel, Maker::newer_amd, Maker::saying_amd, Maker::qemu}) {
    made_by(maker);
    for (const auto& [segment, bytes] : kNullLoads) {
      put_bytes(kCode, bytes);
      EXPECT_EQ(go(1).exceptions, 0u);
      EXPECT_EQ(after(segment), 0u);
      EXPECT_EQ(after(base_of(segment).c_str()), 0u) << segment;
    }
  }
}

TEST_P(NullSelectors, OlderProcessorsOfAmdLeaveIt) {
  made_by(Maker::amd);
  for (const auto& [segment, bytes] : kNullLoads) {
    put_bytes(kCode, bytes);
    EXPECT_EQ(go(1).exceptions, 0u);
    EXPECT_EQ(after(segment), 0u);
    EXPECT_EQ(after("fs.base"), kFsBase);
    EXPECT_EQ(after("gs.base"), kGsBase);
  }
}

TEST_P(NullSelectors, ALoadOfAnotherSelectorTakesItsBase) {
  for (const Maker maker : {Maker::intel, Maker::amd, Maker::qemu}) {
    made_by(maker);
    set("rax", 16);
    put(kCode, {0x8e, 0xe8});
    EXPECT_EQ(go(1).exceptions, 0u);
    EXPECT_EQ(after("gs"), 16u);
    EXPECT_EQ(after("gs.base"), 0u);
  }
}

TEST_P(NullSelectors, ANullLocalTableIsNone) {
  put(kCode, {0x0f, 0x00, 0xd0, 0xb8, 0x0c, 0, 0, 0, 0x8e, 0xe8});  // lldt ax; mov gs, 0ch
  EXPECT_EQ(go(3).exceptions, 1u);
  EXPECT_EQ(after("ldtr"), 0u);
  EXPECT_EQ(after("gs"), 16u);
}

// ---------------------------------------------------------------------------------------------
// Entries, system calls and task switches

TEST_P(NullSelectors, AnEntryFromAnOuterLevelMakesTheStackNullAlone) {
  load("cs", 0x2b, 0xaffb);
  load("ss", 0x23, 0xcff3);
  load("tr", 0x30, 0x8b);
  set("tr.base", kData);
  set("tr.limit", 0x67);
  put_quad(kData + 4, kStack);
  put(kCode, {0x0f, 0x0b});  // ud2
  EXPECT_EQ(go(1).exceptions, 1u);
  EXPECT_EQ(after("ss"), 0u);
  EXPECT_EQ(after("gs"), 16u);
  EXPECT_EQ(after("gs.base"), kGsBase);
}

TEST_P(NullSelectors, SystemCallsAndTheirReturnsMakeNoneNull) {
  recording_.initial.msrs = {{0xc0000081, std::uint64_t{0x18} << 48 | std::uint64_t{8} << 32},
                             {0xc0000082, kHandler}};
  put(kCode, {0x0f, 0x05});
  put(kHandler, {0x48, 0x0f, 0x07});
  for (const Maker maker : {Maker::intel, Maker::amd, Maker::qemu}) {
    made_by(maker);
    EXPECT_EQ(go(2).exceptions, 0u);
    EXPECT_EQ(after("ss"), 0x23u);
    for (const char* segment : {"ds", "es", "fs", "gs"}) EXPECT_EQ(after(segment), 16u);
    EXPECT_EQ(after("fs.base"), kFsBase);
    EXPECT_EQ(after("gs.base"), kGsBase);
  }
}

/// Behind an interrupt the stack is null: Intel's load a flat one, AMD's its selector alone.
TEST_P(NullSelectors, ASystemCallsReturnOnAmdsProcessorsLeavesANullStackUnusable) {
  recording_.initial.msrs = {{0xc0000081, std::uint64_t{0x18} << 48 | std::uint64_t{8} << 32}};
  set("ss", 0);
  set("ss.attributes", 0x10000);
  set("rcx", kCode + 0x80);
  put(kCode, {0x0f, 0x07});  // sysretd
  for (const Maker maker : {Maker::intel, Maker::amd, Maker::newer_amd, Maker::qemu}) {
    made_by(maker);
    EXPECT_EQ(go(1).exceptions, 0u);
    EXPECT_EQ(after("ss"), 0x23u);
    EXPECT_EQ(after("cs"), 0x1bu);
    const bool loads_all = maker == Maker::intel || maker == Maker::qemu;
    EXPECT_EQ(after_.segment[kSs].unusable, !loads_all);
  }
}

TEST_P(NullSelectors, ATaskSwitchLoadsNullSelectorsWithoutABase) {
  begin_without_long_mode();
  put_quad(kGdt + 40, 0x0000890201000067);  // at kData + 100h
  for (unsigned at = 0; at < 0x68; ++at) put(kData + 0x100 + at, {0});
  put_quad(kData + 0x118, std::uint64_t{kTables} << 32);             // CR3
  put_quad(kData + 0x120, std::uint64_t{2} << 32 | (kCode + 0x80));  // EIP, EFLAGS
  put_quad(kData + 0x148, std::uint64_t{8} << 32);                   // ES, CS
  put_quad(kData + 0x150, 16);                                       // SS, DS
  put(kCode, {0xea, 0, 0, 0, 0, 0x28, 0});
  EXPECT_EQ(go(1).exceptions, 0u);
  EXPECT_EQ(after("rip"), kCode + 0x80);
  for (const char* segment : {"ds", "es", "fs", "gs"}) {
    EXPECT_EQ(after(segment), 0u) << segment;
    EXPECT_EQ(after(base_of(segment).c_str()), 0u) << segment;
  }
}

}  // namespace
}  // namespace citcat
