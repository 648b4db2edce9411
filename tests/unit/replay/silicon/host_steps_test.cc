// The replay and the processor we run on, instruction by instruction: a few thousand steps of each
// mode. scripts/test-host makes long runs and prints the tables of docs/silicon.md.

#include "silicon/host_steps.h"

#include <cpuid.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "silicon/wide_steps.h"
#include "unit/replay/machine/both_paths.h"

namespace citcat::silicon {
namespace {

constexpr std::uint64_t kSteps = 3000;

/// Vendor and family (Intel SDM vol. 2, CPUID leaves 0 and 1).
std::string processor_name() {
  unsigned eax = 0, vendor[3] = {}, ignored = 0;
  __get_cpuid(0, &eax, &vendor[0], &vendor[2], &vendor[1]);
  std::string name(12, ' ');
  std::memcpy(name.data(), vendor, name.size());
  __get_cpuid(1, &eax, &ignored, &ignored, &ignored);
  return name + " family " + std::to_string((eax >> 8 & 15) + (eax >> 20 & 255));
}

/// Where the steps' rules were made. Another processor may differ in ways that nobody looked into.
constexpr const char* kKnownProcessor = "AuthenticAMD family 25";

/// Why nothing can be said here; empty where it can.
std::string why_skipped() {
  const std::string why = HostProcessor::unavailable();
  if (!why.empty()) return "no 32-bit processor to be had here: " + why;
  if (processor_name() == kKnownProcessor) return "";
  return processor_name() +
         ": what it does otherwise than the replay's is for scripts/test-host to show, its rules "
         "were made on " +
         kKnownProcessor;
}

void expect_mostly_equal(const StepCounts& counts) {
  std::uint64_t by_rule = 0;
  for (const auto& [rule, count] : counts.rules) by_rule += count;
  for (const auto& [kind, found] : counts.unexplained) {
    ADD_FAILURE() << found.count << " of " << kind << "\n" << found.first;
  }
  std::printf("%llu steps equal, %llu by a named rule\n",
              static_cast<unsigned long long>(counts.equal),
              static_cast<unsigned long long>(by_rule));
  EXPECT_GT(counts.equal, counts.steps() / 10 * 9);
  EXPECT_GT(counts.steps(), 0u);
}

class HostSteps : public testing::TestWithParam<ExecutionPath> {
 protected:
  void SetUp() override {
    const std::string why = why_skipped();
    if (!why.empty()) GTEST_SKIP() << why;
  }
  static void expect_equal(StepMode mode) {
    StepCounts counts;
    LockStep(GetParam(), 1).run(mode, kSteps, counts);
    expect_mostly_equal(counts);
  }
};

TEST_P(HostSteps, Of32BitCodeInFlatSegmentsAreTheProcessors) { expect_equal(StepMode::flat32); }

TEST_P(HostSteps, Of16BitCodeAreTheProcessors) { expect_equal(StepMode::code16); }

TEST_P(HostSteps, InAnySegmentsAreTheProcessors) { expect_equal(StepMode::mixed); }

TEST_P(HostSteps, OfX87MmxAndSseAreTheProcessors) { expect_equal(StepMode::floating); }

/// What would be the use of a comparison that finds nothing?
TEST_P(HostSteps, ThatDifferAreFound) {
  LockStep lockstep(GetParam(), 1);
  HostGuest& guest = lockstep.guest();
  guest.set_instruction({0x40});  // inc eax
  CpuState state;
  StepCounts counts;
  while (counts.ends["retired"] == 0) {
    state = guest.next(StepMode::flat32);
    lockstep.step(state, false, "as it is", counts);
  }
  ASSERT_TRUE(counts.unexplained.empty());
  lockstep.alter_replay([](CpuState& s) { s.gpr[kEax] ^= 0x10; });
  lockstep.step(state, false, "altered", counts);
  EXPECT_EQ(counts.unexplained.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(, HostSteps, both_paths(), path_name);

class WideHostSteps : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = why_skipped();
    if (!why.empty()) GTEST_SKIP() << why;
  }
  static void expect_equal(WideMode mode) {
    StepCounts counts;
    WideLockStep(ExecutionPath::instructions, 1).run(mode, kSteps / 2, counts);
    expect_mostly_equal(counts);
  }
};

TEST_F(WideHostSteps, Of64BitCodeAreTheProcessors) { expect_equal(WideMode::integer); }

TEST_F(WideHostSteps, OfVectorsIn64BitModeAreTheProcessors) { expect_equal(WideMode::vector); }

TEST_F(WideHostSteps, OfNewerIntegerInstructionsAreTheProcessors) { expect_equal(WideMode::newer); }

TEST_F(WideHostSteps, ThatDifferAreFound) {
  WideLockStep lockstep(ExecutionPath::instructions, 1);
  lockstep.guest().set_instruction({0x49, 0xff, 0xc7});  // inc r15
  CpuState state;
  StepCounts counts;
  while (counts.ends["retired"] == 0) {
    state = lockstep.guest().next(WideMode::integer);
    lockstep.step(state, "as it is", counts);
  }
  ASSERT_TRUE(counts.unexplained.empty());
  lockstep.alter_replay([](CpuState& s) { s.long_mode->r[7] ^= std::uint64_t{1} << 40; });
  lockstep.step(state, "altered", counts);
  EXPECT_EQ(counts.unexplained.size(), 1u);
}

}  // namespace
}  // namespace citcat::silicon
