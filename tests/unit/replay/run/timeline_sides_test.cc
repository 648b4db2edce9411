// A place reached from before it and one reached from behind it are one state: that of a replay
// from the beginning, in which every instruction is reported.
//
// CITCAT_DEBUG_POSITIONS: so many places of each recording, and all recordings there are
// (scripts/test-debug).

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "capture/import/import.h"
#include "replay/run/replay_timeline.h"
#include "unit/replay/run/last_stores.h"
#include "unit/replay/run/state_hash.h"
#include "unit/temporary_folder.h"
#include "unit/x86/golden_trace.h"

namespace citcat::test {
namespace {

namespace fs = std::filesystem;

/// What is asked for, or nothing.
std::uint64_t positions_wanted() {
  const char* const wanted = std::getenv("CITCAT_DEBUG_POSITIONS");
  return wanted == nullptr ? 0 : std::strtoull(wanted, nullptr, 10);
}

class TimelineSides : public TemporaryFolder {
 protected:
  RecordingFile imported(const std::vector<std::string>& captures, const std::string& internal,
                         ImportOptions options = {}) {
    options.capture.internal_path = internal;
    import_capture(captures, options, path("r.citcat"));
    return RecordingFile::open(path("r.citcat"));
  }
  RecordingFile machine(const std::string& name) {
    const fs::path folder = fs::path(shared_data_folder()) / "data/machine" / name;
    return imported({folder / "busC.bin.zst"}, folder / "side.csv.zst");
  }

  /// Places in order, so that one replay from the beginning passes them all.
  static void expect_one_state_from_both_sides(const RecordingFile& file, std::uint64_t count) {
    TimelineOptions options;
    options.check = true;
    options.every = 1 << 16;
    ReplayTimeline timeline(file, nullptr, options);
    const ReplayReport whole = timeline.seek({~std::uint64_t{0} - 1, 0});
    ASSERT_NE(whole.end, ReplayReport::End::diverged);
    const std::uint64_t length = timeline.position().instruction;
    std::mt19937_64 random(4);
    std::vector<std::uint64_t> places(count);
    for (std::uint64_t& place : places) place = random() % length;
    std::sort(places.begin(), places.end());

    SessionOptions reference_options;
    reference_options.path = ExecutionPath::instructions;
    ReplaySession reference(file, nullptr, reference_options);
    std::vector<std::string> expected;
    for (const std::uint64_t place : places) {
      reference.run_to(place);
      expected.push_back(state_hash(reference.machine().save(), reference.machine().memory()));
    }
    std::vector<std::size_t> order(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      SCOPED_TRACE(testing::Message() << "at instruction " << places[i]);
      const auto here = [&] { return state_hash(timeline.registers(), timeline.memory()); };
      timeline.seek({places[i], 0});
      const Moment moment = timeline.moment();
      ASSERT_EQ(here(), expected[i]) << "from before";
      std::uint64_t steps = 1 + random() % 20, made = 0;
      for (; made < steps && timeline.step(); ++made) {
      }
      for (; made != 0; --made) ASSERT_TRUE(timeline.step_back());
      ASSERT_EQ(timeline.moment(), moment);
      ASSERT_EQ(here(), expected[i]) << "from behind";
    }
    expect_last_stores(timeline, std::min<std::uint64_t>(count, 100), length);
  }

  /// Compares the last stores to bytes in frames that something was stored to, before random
  /// places.
  static void expect_last_stores(ReplayTimeline& timeline, std::uint64_t count,
                                 std::uint64_t length) {
    timeline.seek({length, 0});
    std::vector<FrameNumber> frames = timeline.memory().mapped_pages();
    std::erase_if(frames, [&](FrameNumber f) { return !timeline.memory().is_changed(f); });
    ASSERT_FALSE(frames.empty());
    std::mt19937_64 random(6);
    std::uint64_t found = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const FrameNumber frame = frames[random() % frames.size()];
      if (i % 4 == 0) {
        timeline.seek({length, 0});
        const PhysAddr whole{frame * kPageSize};
        found += expect_same_last_store(timeline, whole, kPageSize) ? 1 : 0;
        continue;
      }
      timeline.seek({length / 2 + random() % (length / 2), 0});
      const std::uint32_t size = 1u << random() % 8;
      const auto at = static_cast<std::uint32_t>(random() % kPageSize) / size * size;
      found += expect_same_last_store(timeline, PhysAddr{frame * kPageSize + at}, size) ? 1 : 0;
    }
    EXPECT_NE(found, 0u);
  }
};

TEST_F(TimelineSides, AreOneStateOnTheSamples) {
  const fs::path samples = fs::path(CITCAT_SOURCE_DIR) / "samples";
  const std::uint64_t count = std::max<std::uint64_t>(positions_wanted(), 20);
  expect_one_state_from_both_sides(
      imported({samples / "linux/start.bin.zst"}, samples / "linux/start.side.csv"), count);
  ImportOptions options;
  options.capture.cpu = CpuModel::i8088;
  options.initial_state_path = samples / "ibm5150/state.json";
  options.start = parse_where("interrupt:0");
  expect_one_state_from_both_sides(imported({samples / "ibm5150/area5150.sr"}, "", options), count);
}

TEST_F(TimelineSides, AreOneStateOnCapturesOfMachines) {
  if (shared_data_folder().empty()) GTEST_SKIP() << "no shared test data here";
  std::vector<std::string> names{"bios486_tiny", "lin_user_tiny"};
  if (positions_wanted() != 0) {
    names.clear();
    for (const auto& entry : fs::directory_iterator(shared_data_folder() + "/data/machine")) {
      if (fs::exists(entry.path() / "busC.bin.zst")) names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
  }
  const std::uint64_t count = std::max<std::uint64_t>(positions_wanted(), 12);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    expect_one_state_from_both_sides(machine(name), count);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace citcat::test
