// The host's floating point against an independent machine: every x87, MMX and SSE instruction of
// the captures' ground truth runs on HostFpu with the operands that were read there, and what it
// stores, and what it leaves in general registers and flags, must be what that machine stored.
//
// Results that processors compute differently in the last bits (FpuForm::model_specific) taint the
// values derived from them. Only such values may differ, and only by as much as approximations do.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "unit/x86/golden_trace.h"
#include "x86/host_fpu.h"

namespace citcat {
namespace {

using test::GoldenAccess;
using test::GoldenStep;
using test::GoldenTrace;
using Kind = InstructionClass;

class FpuComparison {
 public:
  explicit FpuComparison(const std::string& folder) : trace_(folder + "/golden.bin.zst") {
    auto state = test::load_machine_state(folder + "/initial_state.csv");
    for (std::uint32_t at = 0; at < 512; at += 4) {
      char name[32];
      std::snprintf(name, sizeof name, "fxsave+%03x", at);
      for (std::uint32_t i = 0; i < 4; ++i) {
        fpu_.image()[at + i] = static_cast<std::uint8_t>(state[name] >> (8 * i));
      }
    }
    fpu_.set_mxcsr_mask(state["fxsave+01c"]);
    constexpr std::array<const char*, 8> kGpr = {"eax", "ecx", "edx", "ebx",
                                                 "esp", "ebp", "esi", "edi"};
    for (std::size_t i = 0; i < 8; ++i) gpr_[i] = state[kGpr[i]];
    data_selector_ = static_cast<std::uint16_t>(state["ds_sel"]);
    eflags_ = state["eflags"];
  }

  void run() {
    while (std::optional<GoldenStep> step = trace_.next()) {
      if (!step->completed && !step->event) break;
      if (step->completed) {
        check(*step);
        gpr_ = step->gpr;
        eflags_ = step->eflags;
      }
    }
  }

  std::uint64_t executed = 0, approximations = 0;
  std::uint64_t stores_equal = 0, stores_different = 0, stores_close = 0, registers_compared = 0;

 private:
  static bool ours(Kind kind) { return kind >= Kind::x87 && kind <= Kind::stmxcsr; }

  void check(const GoldenStep& step) {
    const DecodedInstruction info =
        decode_instruction(std::span(step.bytes).first(15), CodeMode{true, false}, CpuModel::p6);
    if (info.state != DecodeState::ok || !ours(info.kind)) return;
    const FpuForm form = fpu_.prepare(info);
    if (form.action == FpuForm::Action::unsupported) return;  // no vector operand, e.g. a fence
    ++executed;
    FpuOperands operands;
    fill(step, form, operands);
    operands.code_selector = step.cs;
    operands.code_offset = step.eip;
    operands.data_selector = data_selector_;
    const std::array<std::uint8_t, 512> fed = operands.memory;
    const FpuResult result = fpu_.execute(form, operands);
    approximations += result.model_specific ? 1 : 0;
    ASSERT_EQ(static_cast<int>(result.fault), 0) << "icount " << step.icount;
    compare_store(step, form, operands, result, fed);
    compare_registers(step, form, operands);
  }

  /// The operand's bytes as they were read, at their place; its lowest address is its offset.
  void fill(const GoldenStep& step, const FpuForm& form, FpuOperands& operands) {
    lowest_ = 0xffffffff;
    for (const GoldenAccess& access : step.accesses) lowest_ = std::min(lowest_, access.linear);
    for (const GoldenAccess& access : step.accesses) {
      if (access.write) continue;
      const std::uint32_t at = access.linear - lowest_;
      if (at + access.size > operands.memory.size()) continue;
      std::copy_n(access.data.begin(), access.size, operands.memory.begin() + at);
    }
    operands.data_offset = lowest_;
    operands.eflags = eflags_;
    if (form.gpr >= 0) operands.gpr = gpr_[static_cast<std::size_t>(form.gpr)];
  }

  void compare_store(const GoldenStep& step, const FpuForm& form, const FpuOperands& operands,
                     const FpuResult& result, const std::array<std::uint8_t, 512>& fed) {
    std::array<std::uint8_t, 512> truth = fed;
    std::size_t end = 0;
    for (const GoldenAccess& access : step.accesses) {
      if (!access.write) continue;
      const std::size_t at = access.linear - lowest_;
      ASSERT_LE(at + access.size, truth.size());
      std::copy_n(access.data.begin(), access.size,
                  truth.begin() + static_cast<std::ptrdiff_t>(at));
      end = std::max(end, at + access.size);
    }
    if (end == 0 && result.store_bytes == 0) return;
    const bool same_size = end == result.store_bytes;
    const bool equal =
        same_size && std::equal(truth.begin(), truth.begin() + static_cast<std::ptrdiff_t>(end),
                                operands.memory.begin());
    (equal ? stores_equal : stores_different) += 1;
    if (!equal) explain(step, form, truth, operands.memory, same_size);
  }

  /// A store may differ by what an approximation taints: mantissas in a save image, or packed
  /// singles after RCPPS and RSQRTPS. Bounds: 2^-50 of numbers around 1 after some twenty
  /// operations good to 2^-63, with a tangent and a remainder among them, which amplify; and some
  /// times the 1.5 * 2^-12 of one approximation (Intel SDM vol. 2, RCPPS).
  void explain(const GoldenStep& step, const FpuForm& form,
               const std::array<std::uint8_t, 512>& truth,
               const std::array<std::uint8_t, 512>& found, bool same_size) {
    bool close = same_size && approximations > 0;
    if (form.action == FpuForm::Action::save) {
      close = close && std::equal(truth.begin(), truth.begin() + 28, found.begin());
      for (std::size_t i = 0; close && i < 8; ++i) {
        close = close_extended(&truth[28 + 10 * i], &found[28 + 10 * i]);
      }
    } else {
      close = close && form.memory_bytes == 16;
      for (std::size_t i = 0; close && i < 4; ++i)
        close = close_single(&truth[4 * i], &found[4 * i]);
    }
    stores_close += close ? 1 : 0;
    EXPECT_TRUE(close) << "icount " << step.icount << ": store of " << form.memory_bytes
                       << " bytes";
  }

  static bool close_extended(const std::uint8_t* a, const std::uint8_t* b) {
    long double x = 0, y = 0;
    std::memcpy(&x, a, 10);
    std::memcpy(&y, b, 10);
    return std::equal(a, a + 10, b) ||
           std::fabs(x - y) <= std::ldexp(std::max(std::fabs(x), 1.0L), -50);
  }

  static bool close_single(const std::uint8_t* a, const std::uint8_t* b) {
    float x = 0, y = 0;
    std::memcpy(&x, a, 4);
    std::memcpy(&y, b, 4);
    return std::fabs(x - y) <= std::ldexp(std::fabs(x), -10);
  }

  /// General registers and flags must be equal: no approximation reaches them in these captures.
  void compare_registers(const GoldenStep& step, const FpuForm& form, const FpuOperands& operands) {
    if (form.writes_gpr) {
      EXPECT_EQ(operands.gpr, step.gpr[static_cast<std::size_t>(form.gpr)]) << step.icount;
      ++registers_compared;
    }
    if (form.writes_eflags) {
      EXPECT_EQ(operands.eflags & 0x8d5, step.eflags & 0x8d5) << step.icount;
      ++registers_compared;
    }
  }

  GoldenTrace trace_;
  HostFpu fpu_;
  std::array<std::uint32_t, 8> gpr_{};
  std::uint16_t data_selector_ = 0;
  std::uint32_t eflags_ = 2, lowest_ = 0;
};

class HostFpuGolden : public testing::TestWithParam<const char*> {};

TEST_P(HostFpuGolden, StoresWhatTheRecordedMachineStored) {
  const std::string shared = test::shared_data_folder();
  const std::string folder = shared + "/data/machine/" + GetParam();
  if (shared.empty() || !std::filesystem::exists(folder)) {
    GTEST_SKIP() << "no capture " << GetParam() << " (set CITCAT_SHARED)";
  }
  FpuComparison comparison(folder);
  comparison.run();
  const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
  std::printf(
      "%s: %llu executed, %llu approximations; stores %llu equal, %llu close; registers %llu\n",
      GetParam(), number(comparison.executed), number(comparison.approximations),
      number(comparison.stores_equal), number(comparison.stores_close),
      number(comparison.registers_compared));
  EXPECT_GT(comparison.executed, 0u);
  EXPECT_EQ(comparison.stores_different, comparison.stores_close);
}

INSTANTIATE_TEST_SUITE_P(Captures, HostFpuGolden,
                         testing::Values("lin_fpu_small", "lin_rcp_tiny", "p4_user_tiny",
                                         "lin_user_small", "lin_procs_small"));

}  // namespace
}  // namespace citcat
