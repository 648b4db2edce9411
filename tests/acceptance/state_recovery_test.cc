// Registers at an interrupt in protected mode, worked out from a bus without a cache, against those
// that an independent simulator had.
//
// The ordinary run takes short captures, with counts and once without; CITCAT_ACCEPTANCE=full takes
// all.

#include "replay/infer/registers/state_recovery.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "acceptance/machine_run.h"
#include "acceptance/recovered_registers.h"
#include "capture/import/import.h"
#include "formats/io/error.h"
#include "replay/verify/verifier.h"
#include "unit/capture/machine_data.h"
#include "unit/capture/shared_data.h"
#include "unit/replay/infer/registers/inferred_recording.h"

namespace citcat::test {
namespace {

/// data/machine/FORMAT.md, section 5.
constexpr std::size_t kGoldenRecord = 40;
constexpr std::uint8_t kGoldenRegisters = 4;

MachineData data_of(const std::string& name) { return MachineData(machine_folder() + "/" + name); }

/// EFLAGS and the general registers after instruction `index`, where the simulator kept them.
std::map<std::string, std::uint64_t> registers_after(const MachineData& data, std::uint64_t index) {
  constexpr std::size_t kMax = std::size_t{1} << 30;
  const auto bytes = read_whole_file(data.path("golden.bin.zst"), kMax);
  std::map<std::string, std::uint64_t> registers;
  std::uint64_t number = 0;
  for (std::size_t at = 0; at + kGoldenRecord <= bytes.size(); at += kGoldenRecord) {
    if (bytes[at] != kGoldenRegisters || number++ != index) continue;
    std::size_t from = at + 4;
    for (const char* name : {"eflags", "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"}) {
      std::memcpy(&registers[name], &bytes[from], 4);
      from += 4;
    }
    break;
  }
  return registers;
}

/// What Linux does not change while the capture runs.
std::map<std::string, std::uint64_t> constant_registers(const MachineData& data) {
  const std::map<std::string, std::uint32_t> dump = data.initial_state();
  std::map<std::string, std::uint64_t> registers;
  for (const auto& [name, dumped] :
       {std::pair{"idtr.base", "idtr_base"}, std::pair{"gdtr.base", "gdtr_base"},
        std::pair{"tr.base", "tr_base"}, std::pair{"sysenter_cs", "msr_00000174_lo"},
        std::pair{"sysenter_esp", "msr_00000175_lo"}, std::pair{"sysenter_eip", "msr_00000176_lo"},
        std::pair{"cr0", "cr0"}}) {
    registers[name] = dump.at(dumped);
  }
  return registers;
}

ImportedRecording import_at(const MachineData& data, std::size_t interrupt, IgnoreCounts counts) {
  ImportOptions options;
  options.ignore_counts = counts;
  options.capture.cpu = CpuModel::p6;
  options.capture.internal_path = data.path("side.csv.zst");
  options.start = Where{Where::Kind::interrupt, interrupt};
  options.initial_state.emplace();
  options.initial_state->model = CpuModel::p6;
  return import_to_memory({data.path("busA.bin.zst")}, options);
}

class StateRecoveryMachine : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (machine_folder().empty()) GTEST_SKIP() << "shared/data/machine is not there";
  }
  /// What the simulator had at the interrupt.
  static std::map<std::string, std::uint64_t> truth_at(std::size_t interrupt) {
    const MachineData data = data_of(GetParam());
    const MonitorInterrupt at = data.interrupts().at(interrupt);
    // Within a REP the registers are those of no completed instruction.
    std::map<std::string, std::uint64_t> truth;
    if (at.rep == 0) truth = registers_after(data, at.icount - 1);
    truth.merge(constant_registers(data));
    return truth;
  }
};

TEST_P(StateRecoveryMachine, TheWholeRunFollowsFromAnyInterrupt) {
  const std::size_t interrupts = data_of(GetParam()).interrupts().size();
  if (interrupts > 10 && !is_full_run()) GTEST_SKIP() << "runs with CITCAT_ACCEPTANCE=full";
  std::uint64_t compared = 0;
  // Each search replays the whole run: a third of them is enough for each day.
  const std::size_t step = is_full_run() ? 1 : 3;
  for (std::size_t interrupt = 0; interrupt < interrupts; interrupt += step) {
    for (const IgnoreCounts counts : {IgnoreCounts::none, IgnoreCounts::all}) {
      if (counts == IgnoreCounts::all && interrupt % 10 != 0) continue;
      ImportedRecording imported = import_at(data_of(GetParam()), interrupt, counts);
      if (counts == IgnoreCounts::all) {
        // Only counts say which of the values that cross no bus come first.
        imported.recording.internal_reads =
            import_at(data_of(GetParam()), interrupt, IgnoreCounts::none).recording.internal_reads;
        imported.recording.internal_reads.change_each(
            [](InternalRead& read) { read.position_known = false; });
      }
      const RecoveredState recovered = recover_registers(imported);
      ASSERT_FALSE(recovered.divergence) << interrupt << ": " << recovered.divergence->reason
                                         << " at transaction " << recovered.divergence->transaction;
      compared += expect_registers(recovered, truth_at(interrupt), interrupt);
      expect_agreement(imported);
    }
  }
  EXPECT_GT(compared, 0u);
}

INSTANTIATE_TEST_SUITE_P(, StateRecoveryMachine,
                         testing::Values("lin_user_tiny", "p4_user_tiny", "lin_procs_small"),
                         [](const auto& at) { return std::string(at.param); });

/// The program computes with vector registers that nothing stores: what it stores then cannot be
/// told, and import must say so.
TEST(StateRecoveryMachineLimits, VectorRegistersThatNothingSavesAreARefusal) {
  if (machine_folder().empty()) GTEST_SKIP() << "shared/data/machine is not there";
  ImportedRecording imported = import_at(data_of("lin_rcp_tiny"), 0, IgnoreCounts::none);
  const RecoveredState recovered = recover_registers(imported);
  ASSERT_TRUE(recovered.divergence);
  EXPECT_NE(recovered.divergence->transaction, ~std::uint64_t{0});
}

TEST(StateRecoveryMachineLimits, ACacheIsRefused) {
  if (machine_folder().empty()) GTEST_SKIP() << "shared/data/machine is not there";
  const MachineData data = data_of("lin_user_tiny");
  ImportOptions options;
  options.capture.cpu = CpuModel::p6;
  options.start = Where{Where::Kind::interrupt, 0};
  options.initial_state.emplace();
  ImportedRecording imported = import_to_memory({data.path("busB.bin.zst")}, options);
  EXPECT_THROW(recover_registers(imported), UsageError);
}

}  // namespace
}  // namespace citcat::test
