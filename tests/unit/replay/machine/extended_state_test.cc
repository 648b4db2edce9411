// XSAVE and what belongs to it, by the Intel SDM vol. 1, chapter 13. Kernels that use it:
// tests/acceptance.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "formats/io/error.h"
#include "replay/machine/machine.h"
#include "unit/replay/machine/long_mode_guest.h"
#include "x86/instruction_features.h"

namespace citcat {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// Tells which bytes are read and written as data, and which bits of the writes nobody tells.
class Accesses final : public Observer {
 public:
  Interest interest() const override { return Interest::everything(); }
  void watch(const Machine& machine) override { machine_ = &machine; }
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position) override {
    if (kind == AccessKind::data) ranges(read_, a, size);
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind, Position) override {
    if (kind != AccessKind::data) return;
    ranges(written_, a, static_cast<std::uint32_t>(bytes.size()));
    if (machine_->reserved_bits() != 0) untold_[a.u32()] = machine_->reserved_bits();
  }

  /// First byte and number, neighbours joined.
  std::map<std::uint32_t, std::uint32_t> read_, written_;
  std::map<std::uint32_t, std::uint32_t> untold_;

 private:
  static void ranges(std::map<std::uint32_t, std::uint32_t>& all, PhysAddr a, std::uint32_t size) {
    all[a.u32()] = size;
    for (auto it = all.begin(); it != all.end();) {
      const auto next = std::next(it);
      if (next != all.end() && it->first + it->second == next->first) {
        it->second += next->second;
        all.erase(next);
      } else {
        it = next;
      }
    }
  }

  const Machine* machine_ = nullptr;
};

/// XCR0 has x87 and SSE, EDX:EAX asks for both, the area is at 20000 and filled with A5 but for a
/// header of zeros; the registers are in use.
class ExtendedStateGuest : public LongModeGuest {
 protected:
  static constexpr std::uint32_t kArea = kData, kHeader = kData + 512;
  static constexpr std::uint32_t kXsave = 1u << 26, kAvx = 1u << 28, kOsXsave = 1u << 18;

  void SetUp() override {
    LongModeGuest::SetUp();
    CpuState& s = recording_.initial;
    set_cpuid(kXsave);
    put(kHandler, {0x90});
    for (const auto& [name, value] : {std::pair{"cr4", std::uint64_t{0x620} | kOsXsave},
                                      {"xcr0", 3},
                                      {"rax", ~0ull},
                                      {"rdx", ~0ull},
                                      {"rbx", kArea}}) {
      ASSERT_TRUE(set_register(s, name, value)) << name;
    }
    for (std::uint32_t i = 0; i < 512; ++i) put(kArea + i, {0xa5});
    for (std::size_t i = 0; i < 10; ++i) s.fx[32 + i] = static_cast<std::uint8_t>(0x10 + i);
    for (std::size_t i = 160; i < 416; ++i) s.fx[i] = static_cast<std::uint8_t>(i);
    s.fx[0] = 0x7f;
    s.fx[1] = 3;
    s.fx[4] = 0x80;
    s.fx[24] = 0x80;
    s.fx[25] = 0x1f;
    s.fx[28] = s.fx[29] = 0xff;
  }
  void put_initial() {
    CpuState& s = recording_.initial;
    std::fill_n(s.fx.begin() + 2, 22, std::uint8_t{0});
    std::fill(s.fx.begin() + 32, s.fx.end(), std::uint8_t{0});
  }
  /// After the instruction: a byte or quadword of memory, read by one more.
  std::uint64_t quad(std::uint32_t at) {
    ReplayOptions options;
    options.to = 1;
    Replayer replayer(recording_, nullptr, options);
    replayer.run();
    std::uint64_t value = 0;
    std::memcpy(&value, replayer.machine().memory().host(PhysAddr{at}), 8);
    return value;
  }
  void expect_exception(unsigned vector) {
    const ReplayReport report = run(1);
    EXPECT_EQ(report.exceptions, 1u);
    const std::uint64_t pushed = kStack - (vector == 13 ? 48 : 40);
    EXPECT_EQ(after("rsp"), pushed);
  }
};

constexpr auto xsave = {0x0f, 0xae, 0x23}, xrstor = {0x0f, 0xae, 0x2b},
               xsaveopt = {0x0f, 0xae, 0x33}, xsavec = {0x0f, 0xc7, 0x23};
constexpr auto xsave64 = {0x48, 0x0f, 0xae, 0x23};
constexpr auto xgetbv = {0x0f, 0x01, 0xd0}, xsetbv = {0x0f, 0x01, 0xd1};

TEST_F(ExtendedStateGuest, NothingOfItIsDefinedWhereTheSystemDoesNotUseIt) {
  set_register(recording_.initial, "cr4", 0x620);
  for (const auto& code : {xsave, xrstor, xgetbv, xsetbv}) {
    put(kCode, code);
    expect_exception(6);
  }
}

TEST_F(ExtendedStateGuest, NothingOfItIsDefinedWhereCpuidHasItNot) {
  put(kCode, xsave);
  set_cpuid(0);
  expect_exception(6);
}

TEST_F(ExtendedStateGuest, ATaskSwitchThatAwaitsTheUnitComesFirst) {
  set_register(recording_.initial, "cr0", 0x8005003b);
  for (const auto& code : {xsave, xrstor}) {
    put(kCode, code);
    expect_exception(7);
  }
}

TEST_F(ExtendedStateGuest, AnAreaThatIsNotAlignedTo64BytesIsRefused) {
  set_register(recording_.initial, "rbx", kArea + 16);
  for (const auto& code : {xsave, xrstor}) {
    put(kCode, code);
    expect_exception(13);
  }
}

TEST_F(ExtendedStateGuest, SavesWhatIsAskedForAndNamesIt) {
  put(kCode, xsave64);
  Accesses accesses;
  run(1, &accesses);
  EXPECT_THAT(accesses.written_,
              testing::ElementsAre(std::pair{kArea, 416u}, std::pair{kHeader, 8u}));
  EXPECT_THAT(accesses.read_, testing::ElementsAre(std::pair{kHeader, 8u}));
  EXPECT_TRUE(accesses.untold_.empty());
  EXPECT_EQ(quad(kHeader), 3u);
  EXPECT_EQ(quad(kArea + 24), 0x0000ffff00001f80u);
  EXPECT_EQ(quad(kArea + 32), 0x1716151413121110u);
  EXPECT_EQ(quad(kArea + 408), 0x9f9e9d9c9b9a9998u);
  EXPECT_EQ(quad(kArea + 416), 0xa5a5a5a5a5a5a5a5u);
}

TEST_F(ExtendedStateGuest, LeavesAloneWhatIsNotAskedFor) {
  put(kCode, xsave);
  set_register(recording_.initial, "rax", 2);
  put_quad(kHeader, 1);
  Accesses accesses;
  run(1, &accesses);
  EXPECT_THAT(accesses.written_,
              testing::ElementsAre(std::pair{kArea + 24, 8u}, std::pair{kArea + 160, 256u},
                                   std::pair{kHeader, 8u}));
  EXPECT_EQ(quad(kHeader), 3u);
  set_register(recording_.initial, "rax", 1);
  Accesses x87;
  run(1, &x87);
  EXPECT_THAT(x87.written_, testing::ElementsAre(std::pair{kArea, 24u}, std::pair{kArea + 32, 128u},
                                                 std::pair{kHeader, 8u}));
}

TEST_F(ExtendedStateGuest, ComponentsInTheirInitialConfigurationAreSavedAndNotNamed) {
  put(kCode, xsave);
  put_initial();
  put_quad(kHeader, 7);
  Accesses accesses;
  run(1, &accesses);
  EXPECT_EQ(quad(kHeader), 4u);
  EXPECT_EQ(quad(kArea + 32), 0u);
  // Whether they are named is the processor's choice.
  EXPECT_THAT(accesses.untold_, testing::ElementsAre(std::pair{kHeader, 3u}));
}

TEST_F(ExtendedStateGuest, XsaveoptLeavesThemOutWhereTheProcessorHasIt) {
  put(kCode, xsaveopt);
  put_initial();
  expect_exception(6);
  recording_.initial.cpuid.push_back({kExtendedStateLeaf, 3, 576, 576, 0});
  recording_.initial.cpuid.push_back({kExtendedStateLeaf, 1, 0, 0, 0});
  Accesses accesses;
  run(1, &accesses);
  EXPECT_THAT(accesses.written_,
              testing::ElementsAre(std::pair{kArea + 24, 8u}, std::pair{kHeader, 8u}));
}

TEST_F(ExtendedStateGuest, XsavecTellsItsFormatAndLeavesOutWhatIsInitial) {
  put(kCode, xsavec);
  expect_exception(6);
  recording_.initial.cpuid.push_back({kExtendedStateLeaf, 3, 576, 576, 0});
  recording_.initial.cpuid.push_back({kExtendedStateLeaf, 2, 0, 0, 0});
  put_quad(kHeader, 7);
  put_quad(kHeader + 8, 5);
  Accesses accesses;
  run(1, &accesses);
  EXPECT_EQ(quad(kHeader), 3u);
  EXPECT_EQ(quad(kHeader + 8), std::uint64_t{1} << 63 | 3);
  EXPECT_THAT(accesses.read_, testing::IsEmpty());
  // All of a component, MXCSR with the one that has XMM registers, or nothing of it.
  put_initial();
  recording_.initial.fx[24] = 0x80;
  Accesses of_initial;
  run(1, &of_initial);
  EXPECT_THAT(of_initial.written_, testing::ElementsAre(std::pair{kHeader, 16u}));
  recording_.initial.fx[24] = 0xa0;
  Accesses of_mxcsr;
  run(1, &of_mxcsr);
  EXPECT_THAT(of_mxcsr.written_,
              testing::ElementsAre(std::pair{kArea + 24, 8u}, std::pair{kArea + 160, 256u},
                                   std::pair{kHeader, 16u}));
  EXPECT_EQ(quad(kHeader), 2u);
}

TEST_F(ExtendedStateGuest, TheSupervisorsFormIsTheCompactedOneAndNothingElse) {
  put(kCode, {0x0f, 0xc7, 0x2b, 0x0f, 0x57, 0xc0, 0x0f, 0xc7, 0x1b});  // xsaves; xorps; xrstors
  expect_exception(6);
  recording_.initial.cpuid.push_back({kExtendedStateLeaf, 3, 576, 576, 0});
  recording_.initial.cpuid.push_back({kExtendedStateLeaf, 8, 0, 0, 0});
  EXPECT_EQ(run(3).exceptions, 0u);
  EXPECT_EQ(after_.fx[161], 161);
  EXPECT_EQ(quad(kHeader + 8), std::uint64_t{1} << 63 | 3);
  put(kCode, {0x0f, 0xc7, 0x1b});  // of the standard format
  put_quad(kHeader + 8, 0);
  expect_exception(13);
  recording_.initial.msrs = {{0xda0, 0x100}};
  const ReplayReport report = run(1);
  ASSERT_EQ(report.end, ReplayReport::End::diverged);
  EXPECT_THAT(report.divergence->reason, HasSubstr("IA32_XSS"));
}

TEST_F(ExtendedStateGuest, TheCompactedFormatIsRestoredAndHasMxcsrAmongWhatMayBeInitial) {
  put(kCode, xrstor);
  recording_.initial.cpuid.push_back({kExtendedStateLeaf, 3, 576, 576, 0});
  recording_.initial.cpuid.push_back({kExtendedStateLeaf, 2, 0, 0, 0});
  put_quad(kHeader, 1);
  put_quad(kHeader + 8, std::uint64_t{1} << 63 | 3);
  recording_.initial.fx[24] = 0xa0;
  EXPECT_EQ(run(1).exceptions, 0u);
  EXPECT_EQ(after_.fx[24], 0x80);
  EXPECT_EQ(after_.fx[160], 0);
  EXPECT_EQ(after_.fx[32], 0xa5);
  for (const auto& [at, wrong] : {std::pair{0u, std::uint64_t{4}}, {0u, 2}, {16u, 1}, {40u, 1}}) {
    put_quad(kHeader + 8, std::uint64_t{1} << 63 | 1);
    put_quad(kHeader, at == 0 ? wrong : 1);
    put_quad(kHeader + at, wrong);
    expect_exception(13);
    put_quad(kHeader + at, 0);
  }
  put_quad(kHeader, 1);
  put_quad(kHeader + 8, std::uint64_t{1} << 63 | 5);
  expect_exception(13);
}

TEST_F(ExtendedStateGuest, RestoresWhatIsNamedAndInitialisesTheRest) {
  put(kCode, xrstor);
  put_quad(kHeader, 2);
  put_quad(kArea + 24, 0x1f81);
  Accesses accesses;
  run(1, &accesses);
  EXPECT_THAT(accesses.read_,
              testing::ElementsAre(std::pair{kArea + 24, 4u}, std::pair{kArea + 160, 256u},
                                   std::pair{kHeader, 24u}));
  EXPECT_EQ(after_.fx[0], 0x7f);
  EXPECT_EQ(after_.fx[1], 0x03);
  EXPECT_EQ(after_.fx[4], 0);
  EXPECT_EQ(after_.fx[32], 0);
  EXPECT_EQ(after_.fx[24], 0x81);
  EXPECT_EQ(after_.fx[160], 0xa5);
  EXPECT_EQ(after_.fx[415], 0xa5);
}

TEST_F(ExtendedStateGuest, MxcsrIsRestoredWithoutTheRegisters) {
  put(kCode, xrstor);
  put_quad(kArea + 24, 0x1fa0);
  set_register(recording_.initial, "rax", 2);
  run(1);
  EXPECT_EQ(after_.fx[24], 0xa0);
  EXPECT_EQ(after_.fx[160], 0);
  EXPECT_EQ(after_.fx[32], 0x10);
}

TEST_F(ExtendedStateGuest, HeadersAndMxcsrWithReservedBitsAreRefused) {
  put(kCode, xrstor);
  put_quad(kArea + 24, 0x1f80);
  put_quad(kHeader, 4);
  expect_exception(13);
  put_quad(kHeader, 3);
  put_quad(kHeader + 8, std::uint64_t{1} << 63);
  expect_exception(13);
  put_quad(kHeader + 8, 0);
  put_quad(kHeader + 16, 1);
  expect_exception(13);
  put_quad(kHeader + 16, 0);
  put_quad(kArea + 24, 0x10000);
  expect_exception(13);
  put_quad(kArea + 24, 0x1f80);
  EXPECT_EQ(run(1).exceptions, 0u);
}

TEST_F(ExtendedStateGuest, WhatIsSavedIsRestored) {
  put(kCode, {0x48, 0x0f, 0xae, 0x23, 0x0f, 0x57, 0xc0, 0xdb, 0xe3, 0x48, 0x0f, 0xae, 0x2b});
  run(1);
  const auto saved = after_.fx;
  run(3);
  EXPECT_NE(after_.fx, saved);
  run(4);
  EXPECT_EQ(after_.fx, saved);
}

TEST_F(ExtendedStateGuest, Xcr0IsReadAndSetAsFarAsTheProcessorHasIt) {
  set_register(recording_.initial, "rcx", 0);
  put(kCode, {0x0f, 0x01, 0xd0, 0x0f, 0x01, 0xd1});
  run(1);
  EXPECT_EQ(after("rax"), 3u);
  EXPECT_EQ(after("rdx"), 0u);
  put(kCode, {0xb8, 1, 0, 0, 0, 0x31, 0xd2, 0x0f, 0x01, 0xd1});  // mov eax, 1; xor edx, edx; xsetbv
  run(3);
  EXPECT_EQ(after("xcr0"), 1u);
  for (const std::uint64_t value : {0u, 2u, 7u, 9u}) {
    set_register(recording_.initial, "rax", value);
    set_register(recording_.initial, "rdx", 0);
    put(kCode, xsetbv);
    expect_exception(13);
  }
  set_register(recording_.initial, "rcx", 1);
  put(kCode, xgetbv);
  expect_exception(13);
}

TEST_F(ExtendedStateGuest, AvxAmongTheComponentsIsRefusedByName) {
  set_register(recording_.initial, "rcx", 0);
  set_register(recording_.initial, "rax", 7);
  set_register(recording_.initial, "rdx", 0);
  set_cpuid(kXsave | kAvx);
  put(kCode, xsetbv);
  const ReplayReport report = run(1);
  ASSERT_EQ(report.end, ReplayReport::End::diverged);
  EXPECT_THAT(report.divergence->reason, HasSubstr("XSETBV enables AVX"));
  set_register(recording_.initial, "xcr0", 7);
  EXPECT_THAT([&] { run(1); }, ThrowsMessage<UsageError>(HasSubstr("AVX")));
}

TEST_F(ExtendedStateGuest, WhatIsInUseIsRefusedByNameWhereTheProcessorTellsIt) {
  set_register(recording_.initial, "rcx", 1);
  recording_.initial.cpuid = {{0, 13, 0, 0, 0},
                              {1, 0, 0, kXsave, 0},
                              {13, 3, 0, 0, 0},
                              {13, 4, 0, 0, 0}};  // sub-leaf 1: XGETBV of 1
  put(kCode, xgetbv);
  const ReplayReport report = run(1);
  ASSERT_EQ(report.end, ReplayReport::End::diverged);
  EXPECT_THAT(report.divergence->reason, HasSubstr("XGETBV of the components in use"));
}

TEST_F(ExtendedStateGuest, TheSystemMayUseItOnlyWhereCpuidHasItAndCpuidShowsThatItDoes) {
  set_register(recording_.initial, "cr4", 0x620);
  set_register(recording_.initial, "rcx", 0x620 | kOsXsave);
  put(kCode, {0x0f, 0x22, 0xe1, 0xb8, 1, 0, 0, 0, 0x0f, 0xa2});  // mov cr4, rcx; mov eax, 1; cpuid
  run(3);
  EXPECT_EQ(after("rcx"), kXsave | 1u << 27);
  set_cpuid(0);
  expect_exception(13);
}

}  // namespace
}  // namespace citcat
