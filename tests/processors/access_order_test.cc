// Processors that are replayed together make their accesses in the order in which an independent
// simulator made them: iterations of REP instructions too, between which others come.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "capture/processors/machine_import.h"
#include "events/archive/machine_file.h"
#include "processors/shared_stream.h"
#include "replay/processors/machine_session.h"
#include "unit/capture/machine_data.h"
#include "unit/capture/shared_data.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

/// An instruction, or an iteration of one, that accesses memory.
struct AccessStep {
  std::size_t processor = 0;
  std::uint64_t instruction = 0, iteration = 0;
  bool operator==(const AccessStep&) const = default;
};

void add_step(std::vector<AccessStep>& steps, const AccessStep& step) {
  if (steps.empty() || steps.back() != step) steps.push_back(step);
}

class AccessSteps final : public MachineListener {
 public:
  std::vector<AccessStep> all;
  void access(const ProcessorAccess& a) override {
    add_step(all, {a.processor, a.position.instruction, a.position.iteration});
  }
};

std::vector<AccessStep> steps_of_simulator(const std::string& path) {
  constexpr std::uint8_t kOperands = 0;  // and what deliveries of interrupts do
  constexpr std::uint8_t kWalks = 1;
  constexpr std::size_t kIterations = 32;
  std::vector<AccessStep> steps;
  for (const SharedStreamRecord& r : read_shared_stream(path)) {
    if (!r.is_access() || (r.c != kOperands && r.c != kWalks)) continue;
    std::uint32_t iteration = 0;
    std::memcpy(&iteration, r.x + kIterations, sizeof iteration);
    add_step(steps, {r.processor(), r.instruction, iteration});
  }
  return steps;
}

/// Places where one processor comes between two iterations of the other's.
std::size_t interleaved_repeats(const std::vector<AccessStep>& steps) {
  std::size_t count = 0;
  for (std::size_t i = 2; i < steps.size(); ++i) {
    const AccessStep &now = steps[i], &between = steps[i - 1];
    for (std::size_t k = i - 1; k-- > 0 && now.iteration != 0;) {
      if (steps[k].processor != now.processor) continue;
      const bool same = steps[k].instruction == now.instruction;
      if (same && between.processor != now.processor) ++count;
      break;
    }
  }
  return count;
}

class AccessOrder : public TemporaryFolder {};

TEST_F(AccessOrder, IsThatOfTheSimulatorWithinRepToo) {
  if (shared_file("smp").empty()) GTEST_SKIP() << "without the shared captures";
  const MachineData data(shared_file("smp") + "/smp_lin64_poke");
  MachineImportOptions options;
  options.internal_paths = {data.path("side.0.csv.zst"), data.path("side.1.csv.zst")};
  (void)::citcat::import_machine({data.path("busA.bin.zst")}, options, path("rec.citcat"));
  const auto machine = MachineFile::find(path("rec.citcat"));
  ASSERT_TRUE(machine);
  AccessSteps found;
  MachineSession session(*machine, found, std::nullopt);
  EXPECT_TRUE(session.run().empty());
  EXPECT_GT(interleaved_repeats(found.all), 50u);

  const std::vector<AccessStep> right = steps_of_simulator(data.path("golden.bin.zst"));
  auto at = right.begin();
  for (std::size_t i = 0; i < found.all.size(); ++i) {
    const AccessStep& step = found.all[i];
    at = std::find(at, right.end(), step);
    ASSERT_NE(at, right.end()) << "access " << i << ": processor " << step.processor
                               << ", instruction " << step.instruction << "+" << step.iteration;
  }
}

}  // namespace
}  // namespace citcat::test
