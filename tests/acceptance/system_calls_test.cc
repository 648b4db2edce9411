// System calls and names of processes, as a replay's events show them, against an independent
// decoding of the golden streams: the instructions that the machine itself logged, with the
// registers before them.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "acceptance/machine_run.h"
#include "acceptance/verified_replay.h"
#include "formats/io/input.h"
#include "tools/guest/guest_observer.h"
#include "unit/capture/machine_data.h"
#include "unit/capture/shared_data.h"

namespace citcat::test {
namespace {

/// Where a program called the kernel, or the kernel went back by SYSEXIT.
struct LoggedCall {
  std::uint64_t instruction = 0;
  std::array<std::uint32_t, 8> gpr{};  ///< EAX ECX EDX EBX ESP EBP ESI EDI before it
};

/// The records of data/machine/FORMAT.md, section 5, as far as they have registers.
struct GoldenCalls {
  std::vector<LoggedCall> calls, returns;
  std::uint64_t end = 0;  ///< instructions that were decoded

  explicit GoldenCalls(const MachineCapture& capture) {
    const MachineData data(machine_folder() + "/" + capture.name);
    InputStream in(data.path("golden.bin.zst"));
    end = data.meta("golden_regs");
    std::array<std::uint8_t, 40> record;
    LoggedCall now;
    while (in.read(record) == record.size()) {
      if (record[0] == 4) std::memcpy(now.gpr.data(), &record[8], 32);
      if (record[0] != 1) continue;
      std::memcpy(&now.instruction, &record[32], 8);
      if (now.instruction >= end) return;
      const bool user = (record[2] & 3) == 3;
      const unsigned code = record[16] << 8 | record[17];
      if (user && (code == 0xcd80 || code == 0x0f34)) calls.push_back(now);
      if (code == 0x0f35) returns.push_back(now);
    }
  }
};

struct Followed final : tools::SystemCallListener {
  void began(const tools::SystemCall& call) override { begun.push_back(call); }
  void ended(const tools::SystemCall& call) override { ends.push_back(call); }
  void executed(AddressSpaceId, const std::string& path, Position) override {
    programs.push_back(path);
  }
  std::vector<tools::SystemCall> begun, ends;
  std::vector<std::string> programs;
};

class SystemCallsOf : public ::testing::TestWithParam<MachineCapture> {};

TEST_P(SystemCallsOf, AreThoseThatTheMachineLogged) {
  if (shared_file("machine/" + GetParam().name).empty()) {
    GTEST_SKIP() << capture_text(GetParam()) << " is not there (set CITCAT_SHARED)";
  }
  const GoldenCalls golden(GetParam());
  const ImportedRecording imported = import_machine(GetParam(), IgnoreCounts::none);
  Followed followed;
  tools::GuestObserver observer(&followed);
  const VerifiedReplay replay(imported, &observer);

  std::size_t n = 0;
  for (const tools::SystemCall& call : followed.begun) {
    if (call.begin.instruction >= golden.end) continue;
    ASSERT_LT(n, golden.calls.size());
    const LoggedCall& logged = golden.calls[n++];
    EXPECT_EQ(call.begin.instruction, logged.instruction);
    EXPECT_EQ(call.number, logged.gpr[0]);
    const std::array<std::uint32_t, 5> arguments{logged.gpr[3], logged.gpr[1], logged.gpr[2],
                                                 logged.gpr[6], logged.gpr[7]};
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      EXPECT_EQ(call.arguments[i], arguments[i]) << "argument " << i;
    }
  }
  EXPECT_EQ(n, golden.calls.size());
  EXPECT_GT(n, 0u);

  // Whatever ended by SYSEXIT has the result that EAX held there.
  std::size_t compared = 0;
  for (const tools::SystemCall& call : followed.ends) {
    for (const LoggedCall& logged : golden.returns) {
      if (logged.instruction != call.end.instruction) continue;
      EXPECT_EQ(call.result, logged.gpr[0]);
      ++compared;
    }
  }
  EXPECT_GT(compared, 0u);
}

INSTANTIATE_TEST_SUITE_P(Captures, SystemCallsOf,
                         ::testing::Values(MachineCapture{"lin_user_tiny", 'B'},
                                           MachineCapture{"lin_procs_small", 'B'}),
                         [](const auto& parameter) { return capture_text(parameter.param); });

}  // namespace
}  // namespace citcat::test
