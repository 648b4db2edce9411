// Registers at an interrupt in long mode, worked out from a bus without a cache, against those that
// an independent simulator had.

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "acceptance/machine_run.h"
#include "acceptance/recovered_registers.h"
#include "capture/import/import.h"
#include "formats/io/input.h"
#include "unit/capture/machine_data.h"
#include "unit/replay/infer/registers/inferred_recording.h"

namespace citcat::test {
namespace {

constexpr const char* kCapture = "k64_procs_tiny";

/// RFLAGS and the general registers after instruction `index`, where the simulator kept them: three
/// records of 64 bytes each (data/machine64/FORMAT64.md).
std::map<std::string, std::uint64_t> wide_registers_after(const MachineData& data,
                                                          std::uint64_t index) {
  constexpr std::size_t kRecord = 64, kMax = std::size_t{1} << 30;
  constexpr std::uint8_t kRegisters = 4;
  const char* const names[3][6] = {{"rax", "rcx", "rdx", "rbx", "rsp", "rbp"},
                                   {"rsi", "rdi", "r8", "r9", "r10", "r11"},
                                   {"r12", "r13", "r14", "r15"}};
  const auto bytes = read_whole_file(data.path("golden.bin.zst"), kMax);
  std::map<std::string, std::uint64_t> registers;
  std::uint64_t number = 0;
  for (std::size_t at = 0; at + kRecord <= bytes.size(); at += kRecord) {
    if (bytes[at] != kRegisters || number++ / 3 != index) continue;
    const std::uint8_t part = bytes[at + 1];
    std::uint32_t flags = 0;
    std::memcpy(&flags, &bytes[at + 4], sizeof flags);
    registers["rflags"] = flags;
    // The first stands before the position, the others behind it.
    for (std::size_t i = 0; i < 6; ++i) {
      if (names[part][i] == nullptr) continue;
      std::memcpy(&registers[names[part][i]], &bytes[at + (i == 0 ? 8 : 16 + 8 * i)], 8);
    }
    if (part == 2) break;
  }
  return registers;
}

/// What Linux does not change while the capture runs.
std::map<std::string, std::uint64_t> wide_constant_registers(const MachineData& data) {
  const std::map<std::string, std::uint32_t> dump = data.initial_state();
  std::map<std::string, std::uint64_t> registers;
  for (const auto& [name, dumped] :
       {std::pair{"idtr.base", "idtr_base"}, std::pair{"gdtr.base", "gdtr_base"},
        std::pair{"tr.base", "tr_base"}, std::pair{"star", "msr_c0000081"},
        std::pair{"lstar", "msr_c0000082"}, std::pair{"fmask", "msr_c0000084"},
        std::pair{"cr0", "cr0"}, std::pair{"efer", "efer"}}) {
    const std::string dword(dumped);
    registers[name] = std::uint64_t{dump.at(dword + "_hi")} << 32 | dump.at(dword + "_lo");
  }
  return registers;
}

ImportedRecording import_at(const MachineData& data, std::size_t interrupt) {
  ImportOptions options;
  options.capture.cpu = CpuModel::x86_64;
  options.capture.internal_path = data.path("side.csv.zst");
  options.start = Where{Where::Kind::interrupt, interrupt};
  options.recovers_state = true;
  return import_to_memory({data.path("busA.bin.zst")}, options);
}

class LongModeRecoveryMachine : public testing::Test {
 protected:
  void SetUp() override {
    if (machine64_folder().empty()) GTEST_SKIP() << "shared/data/machine64 is not there";
  }
  MachineData data() const { return MachineData(machine64_folder() + "/" + kCapture); }
};

TEST_F(LongModeRecoveryMachine, TheRunFollowsFromAnInterrupt) {
  std::uint64_t compared = 0;
  for (std::size_t interrupt = 0; interrupt < data().interrupts().size(); ++interrupt) {
    const bool often = interrupt == 1 || interrupt == 3;  // of a program, and of the kernel
    if (!often && !is_full_run()) continue;
    ImportedRecording imported = import_at(data(), interrupt);
    const RecoveredState recovered = recover_registers(imported);
    ASSERT_FALSE(recovered.divergence) << interrupt << ": " << recovered.divergence->reason
                                       << " at transaction " << recovered.divergence->transaction;
    auto truth = wide_registers_after(data(), data().interrupts().at(interrupt).icount - 1);
    truth.merge(wide_constant_registers(data()));
    compared += expect_registers(recovered, truth, interrupt);
    expect_agreement(imported);
  }
  EXPECT_GT(compared, 0u);
}

}  // namespace
}  // namespace citcat::test
