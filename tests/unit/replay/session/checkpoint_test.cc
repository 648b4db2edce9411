// A checkpoint is the whole machine: going on from it gives the run it was taken from.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "capture/import/import.h"
#include "replay/session/replayer.h"
#include "unit/x86/golden_trace.h"

namespace citcat {
namespace {

namespace fs = std::filesystem;

/// Everything a trace says of an instruction.
struct CheckpointTrace final : Observer {
  std::vector<std::uint64_t> words;
  void instruction(const ExecutedInstruction& e, Position now) override {
    words.push_back(e.linear.value << 32 | e.info->length << 16 | e.ea_count);
    for (unsigned i = 0; i < e.ea_count; ++i) words.push_back(e.ea[i].low32());
    words.push_back(now.instruction << 8 | now.iteration);
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind, Position) override {
    for (const std::uint8_t b : bytes) words.push_back(std::uint64_t{a.value} << 8 | b);
  }
};

void expect_same_run_from_checkpoints(const ImportedRecording& imported, std::uint64_t end) {
  for (const std::uint64_t at : {end / 7, end / 3, end / 2, end - 3}) {
    CheckpointTrace trace;
    Replayer replayer(imported.recording, &trace, {});
    replayer.run_to(at);
    const Replayer::Checkpoint checkpoint = replayer.checkpoint();
    trace.words.clear();
    const ReplayReport first = replayer.run_to(end);
    const CpuState first_state = replayer.machine().save();
    const std::vector<std::uint64_t> first_words = std::move(trace.words);
    ASSERT_FALSE(first_words.empty());

    trace.words.clear();
    replayer.restore(checkpoint);
    EXPECT_EQ(replayer.machine().position().instruction, at);
    const ReplayReport second = replayer.run_to(end);
    EXPECT_EQ(second.instructions, first.instructions);
    EXPECT_EQ(second.interrupts, first.interrupts);
    EXPECT_TRUE(replayer.machine().save() == first_state) << "after a checkpoint at " << at;
    EXPECT_TRUE(trace.words == first_words) << "after a checkpoint at " << at;
  }
}

TEST(Checkpoint, ContinuesTheSampleCaptureExactly) {
  const fs::path sample = fs::path(CITCAT_SOURCE_DIR) / "samples/ibm5150";
  ImportOptions options;
  options.capture.cpu = CpuModel::i8088;
  options.initial_state_path = sample / "state.json";
  options.start = parse_where("interrupt:0");
  std::string capture;
  for (const auto& entry : fs::directory_iterator(sample)) {
    if (entry.path().extension() == ".sr") capture = entry.path();
  }
  const ImportedRecording imported = import_to_memory({capture}, options);
  ASSERT_TRUE(imported.recording.instructions);
  expect_same_run_from_checkpoints(imported, *imported.recording.instructions - 2);
}

TEST(Checkpoint, ContinuesAnOperatingSystemExactly) {
  const fs::path capture = fs::path(test::shared_data_folder()) / "data/machine/lin_user_tiny";
  if (!fs::exists(capture)) GTEST_SKIP() << capture << " is absent";
  ImportOptions options;
  options.capture.internal_path = capture / "side.csv.zst";
  const ImportedRecording imported = import_to_memory({capture / "busB.bin.zst"}, options);
  expect_same_run_from_checkpoints(imported, *imported.recording.instructions);
}

}  // namespace
}  // namespace citcat
