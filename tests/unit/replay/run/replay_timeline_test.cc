// Wherever one comes from, a position is one state: the one that a replay from the beginning has
// there.

#include "replay/run/replay_timeline.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "capture/import/import.h"
#include "formats/io/error.h"
#include "unit/replay/machine/random_guest.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLength = 20'000;

void expect_same_memory(const Memory& a, const Memory& b) {
  std::set<FrameNumber> pages;
  for (const Memory* memory : {&a, &b}) {
    for (const auto& page : memory->save_changed()) pages.insert(page->number);
  }
  for (const FrameNumber page : pages) {
    for (std::uint32_t i = 0; i < kPageSize; ++i) {
      const PhysAddr at{page * kPageSize + i};
      if (a.defined_byte(at) != b.defined_byte(at)) {
        ADD_FAILURE() << "memory differs at " << at.value;
        return;
      }
    }
  }
}

Recording long_guest(GuestMode mode) { return long_random_guest(mode, kLength); }

TimelineOptions every(std::uint64_t instructions) {
  TimelineOptions options;
  options.every = instructions;
  return options;
}

class ReplayTimelineTest : public TemporaryFolder {
 protected:
  RecordingFile stored(const Recording& recording) {
    RecordingFileWriter(path("r.citcat")).finish(recording);
    return RecordingFile::open(path("r.citcat"));
  }
  RecordingFile sample() {
    const fs::path folder = fs::path(CITCAT_SOURCE_DIR) / "samples/ibm5150";
    ImportOptions options;
    options.capture.cpu = CpuModel::i8088;
    options.initial_state_path = folder / "state.json";
    options.start = parse_where("interrupt:0");
    import_capture({folder / "area5150.sr"}, options, path("r.citcat"));
    return RecordingFile::open(path("r.citcat"));
  }
  /// Goes to places of a run of so many instructions at random, and holds each to a replay from the
  /// beginning.
  static void expect_states_of_replay(ReplayTimeline& timeline, const RecordingFile& file,
                                      std::uint64_t instructions, unsigned seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < 12; ++i) {
      const Position to{random() % instructions, 0};
      ASSERT_NE(timeline.seek(to).end, ReplayReport::End::diverged);
      Replayer reference(file.recording(), nullptr, {});
      reference.run_to(to);
      EXPECT_EQ(timeline.position(), reference.machine().position());
      EXPECT_TRUE(timeline.registers() == reference.machine().save()) << to.instruction;
      SCOPED_TRACE(testing::Message() << "at instruction " << to.instruction);
      expect_same_memory(timeline.memory(), reference.machine().memory());
    }
  }
};

TEST_F(ReplayTimelineTest, APositionIsTheSameStateFromWhereverOneComes) {
  for (const GuestMode mode : {GuestMode::kernel, GuestMode::user, GuestMode::real}) {
    const RecordingFile file = stored(long_guest(mode));
    ReplayTimeline timeline(file, nullptr, every(1000));
    expect_states_of_replay(timeline, file, kLength, 5);
    EXPECT_GT(timeline.laid(), 5u);
  }
}

TEST_F(ReplayTimelineTest, KeepsNoMoreFramesThanItMay) {
  const RecordingFile file = stored(long_guest(GuestMode::kernel));
  TimelineOptions options = every(100);
  options.max_frames = 200;
  ReplayTimeline timeline(file, nullptr, options);
  expect_states_of_replay(timeline, file, kLength, 6);
  EXPECT_LT(timeline.laid(), 100u);
}

TEST_F(ReplayTimelineTest, SteppingBackUndoesStepping) {
  const RecordingFile file = stored(long_guest(GuestMode::kernel));
  ReplayTimeline timeline(file, nullptr, every(500));
  std::mt19937_64 random(9);
  bool repeated = false;
  for (int i = 0; i < 6; ++i) {
    timeline.seek({random() % (kLength - 200), 0});
    std::vector<std::pair<Position, CpuState>> passed;
    for (int k = 0; k < 60; ++k) {
      passed.push_back({timeline.position(), timeline.registers()});
      repeated |= timeline.position().iteration != 0;
      ASSERT_TRUE(timeline.step());
    }
    for (; !passed.empty(); passed.pop_back()) {
      ASSERT_TRUE(timeline.step_back());
      ASSERT_EQ(timeline.position(), passed.back().first);
      ASSERT_TRUE(timeline.registers() == passed.back().second);
    }
  }
  EXPECT_TRUE(repeated);
}

TEST_F(ReplayTimelineTest, DoesNotStepBackFromTheBeginningNorOnFromTheEnd) {
  const RecordingFile file = stored(random_guest(GuestMode::flat, 2, 1000, false));
  ReplayTimeline timeline(file, nullptr, {});
  EXPECT_FALSE(timeline.step_back());
  EXPECT_EQ(timeline.seek({5000, 0}).end, ReplayReport::End::complete);
  EXPECT_EQ(timeline.position(), (Position{1000, 0}));
  EXPECT_FALSE(timeline.step());
  EXPECT_TRUE(timeline.step_back());
  EXPECT_LT(timeline.position(), (Position{1000, 0}));
}

TEST_F(ReplayTimelineTest, ReturnsToItsMarks) {
  const RecordingFile file = stored(long_guest(GuestMode::user));
  ReplayTimeline timeline(file, nullptr, every(1000));
  timeline.seek({7777, 0});
  const CpuState there = timeline.registers();
  const std::size_t mark = timeline.mark();
  timeline.seek({15'000, 0});
  const CpuState later = timeline.registers();
  timeline.return_to(mark);
  EXPECT_EQ(timeline.position(), (Position{7777, 0}));
  EXPECT_TRUE(timeline.registers() == there);
  timeline.seek({15'000, 0});
  EXPECT_TRUE(timeline.registers() == later);
  timeline.forget(mark);
  EXPECT_THROW(timeline.return_to(mark), UsageError);
}

TEST_F(ReplayTimelineTest, ComparesWithTheEvidenceWhereverItGoes) {
  const RecordingFile file = sample();
  TimelineOptions options = every(50);
  options.check = true;
  ReplayTimeline timeline(file, nullptr, options);
  expect_states_of_replay(timeline, file, 600, 7);
  const ReplayReport report = timeline.seek({100'000, 0});
  EXPECT_EQ(report.end, ReplayReport::End::complete);
  const Position end = timeline.position();
  timeline.seek({3, 0});
  timeline.seek({100'000, 0});
  EXPECT_EQ(timeline.position(), end);
}

TEST_F(ReplayTimelineTest, BeginsAtTheCheckpointsOfTheArchive) {
  { stored(long_guest(GuestMode::kernel)); }
  {
    const RecordingFile file = RecordingFile::open(path("r.citcat"));
    Replayer replayer(file.recording(), nullptr, {});
    CheckpointTaker taker(file.recording(), {3000, 1 << 26});
    while (taker.next() < kLength) {
      replayer.run_to(taker.next());
      taker.take(replayer);
    }
    taker.append_to(path("r.citcat"), {kLength, 0}, {});
  }
  const RecordingFile file = RecordingFile::open(path("r.citcat"));
  TimelineOptions options;
  options.every = std::uint64_t{1} << 30;
  ReplayTimeline timeline(file, nullptr, options);
  expect_states_of_replay(timeline, file, kLength, 8);
  EXPECT_EQ(timeline.laid(), 1u);
}

}  // namespace
}  // namespace citcat::test
