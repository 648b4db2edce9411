// What newer processors with long mode have, as far as it is executed: bases of FS and GS, SMAP,
// process-context identifiers, and integer instructions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "formats/io/error.h"
#include "replay/session/replayer.h"
#include "unit/replay/machine/both_paths.h"
#include "unit/replay/machine/long_mode_guest.h"

namespace citcat {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kFsGsBase = 1u << 0, kBmi1 = 1u << 3, kSmep = 1u << 7, kBmi2 = 1u << 8,
                        kInvpcid = 1u << 10, kAdx = 1u << 19, kSmap = 1u << 20;
constexpr std::uint32_t kPcid = 1u << 17, kMovbe = 1u << 22, kRdrand = 1u << 30;
constexpr std::uint32_t kRdpid = 1u << 22, kRdseed = 1u << 18, kLzcnt = 1u << 5;

/// Both paths; the page at 200000 is the user's, the one at 0 the supervisor's.
class NewerFeatures : public LongModeGuest, public testing::WithParamInterface<ExecutionPath> {
 protected:
  static constexpr std::uint32_t kUserPage = 0x200000, kEntry = kTables + 0x2008;

  void SetUp() override {
    LongModeGuest::SetUp();
    put_quad(kTables + 0x2000, 0x83);
    put_quad(kEntry, 0x8000000000200087);
    for (std::uint32_t i = 0; i < 0x100; ++i) recording_.image.set(PhysAddr{kUserPage + i}, 0);
    put(kUserPage + 0x10, {0x11, 0, 0, 0});
    put(0x10, {0x22, 0, 0, 0});
    put(kHandler, {0x58, 0xf4});  // pop rax: the error code; hlt
  }
  void set_features(std::uint32_t ecx_of_1, std::uint32_t ebx_of_7, std::uint32_t ecx_of_7 = 0,
                    std::uint32_t ecx_of_80000001 = 0) {
    recording_.initial.cpuid = {{0, 7, 0, 0, 0},
                                {1, 0, 0, ecx_of_1, 0},
                                {7, 0, ebx_of_7, ecx_of_7, 0},
                                {0x80000001, 0, 0, ecx_of_80000001, 0}};
  }
  void set(const char* name, std::uint64_t value) {
    ASSERT_TRUE(set_register(recording_.initial, name, value)) << name;
  }
  void enter_level_3() {
    put_quad(kTables + 0x2000, 0x87);
    set("cs", 0x2b);
    set("cs.attributes", 0xaffb);
    set("ss", 0x23);
    set("ss.attributes", 0xcff3);
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
  /// The exception of the one instruction at kCode is `vector`'s, whose handler alone is not HLT.
  ReplayReport fails_with(std::uint32_t vector) {
    put_quad(kIdt + 16 * vector, 0x00018e0000080000 | ((kHandler + 0x100) & 0xffff));
    put(kHandler + 0x100, {0xbf, 0x77, 0, 0, 0, 0xf4});  // mov edi, 77h
    const ReplayReport report = go(2);
    EXPECT_EQ(report.exceptions, 1u);
    EXPECT_EQ(after("rdi"), 0x77u);
    return report;
  }
};

INSTANTIATE_TEST_SUITE_P(Paths, NewerFeatures, both_paths(), path_name);

// ---------------------------------------------------------------------------------------------
// FSGSBASE

TEST_P(NewerFeatures, ProgramsReadAndWriteTheBasesOfFsAndGs) {
  set_features(0, kFsGsBase);
  enter_level_3();
  set("cr4", 0x10620);
  set("rax", 0xffff800000012345);
  set("rdx", ~std::uint64_t{0});
  put(kCode, {0xf3, 0x48, 0x0f, 0xae, 0xd0,  // wrfsbase rax
              0xf3, 0x48, 0x0f, 0xae, 0xc1,  // rdfsbase rcx
              0xf3, 0x0f, 0xae, 0xd8,        // wrgsbase eax
              0xf3, 0x48, 0x0f, 0xae, 0xcb,  // rdgsbase rbx
              0xf3, 0x0f, 0xae, 0xc2});      // rdfsbase edx
  EXPECT_EQ(go(5).exceptions, 0u);
  EXPECT_EQ(after("fs.base"), 0xffff800000012345u);
  EXPECT_EQ(after("rcx"), 0xffff800000012345u);
  EXPECT_EQ(after("gs.base"), 0x12345u);
  EXPECT_EQ(after("rbx"), 0x12345u);
  EXPECT_EQ(after("rdx"), 0x12345u);
}

TEST_P(NewerFeatures, TheBaseThatWasWrittenIsUsedAtOnce) {
  set_features(0, kFsGsBase);
  set("cr4", 0x10620);
  set("rax", 0x10);
  put(kCode, {0xf3, 0x48, 0x0f, 0xae, 0xd0, 0x64, 0x8b, 0x0c, 0x25, 0, 0, 0, 0});
  go(2);  // wrfsbase rax; mov ecx, fs:[0]
  EXPECT_EQ(after("rcx"), 0x22u);
}

TEST_P(NewerFeatures, TheBasesAreUndefinedWithoutTheBitOfCr4) {
  set_features(0, kFsGsBase);
  put(kCode, {0xf3, 0x48, 0x0f, 0xae, 0xc1});
  fails_with(6);
}

TEST_P(NewerFeatures, ABaseHasToBeCanonical) {
  set_features(0, kFsGsBase);
  set("cr4", 0x10620);
  set("rax", 0x800000000000);
  put(kCode, {0xf3, 0x48, 0x0f, 0xae, 0xd8});
  fails_with(13);
}

TEST_P(NewerFeatures, BitsOfCr4ThatTheProcessorHasNotGotAreRefused) {
  set("rax", 0x10620);
  put(kCode, {0x0f, 0x22, 0xe0});  // mov cr4, rax
  set_features(0, kFsGsBase);
  EXPECT_EQ(go(1).exceptions, 0u);
  EXPECT_EQ(after("cr4"), 0x10620u);
  set_features(0, kSmap);
  fails_with(13);
}

}  // namespace
}  // namespace citcat
