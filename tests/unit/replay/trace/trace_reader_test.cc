// Any part of a trace is that part of the whole trace, wherever the replay began.

#include "replay/trace/trace_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <random>

#include "capture/import/import.h"
#include "events/archive/recording_file.h"
#include "replay/session/adoptions.h"
#include "replay/session/checkpoints.h"
#include "replay/session/digest_sink.h"
#include "replay/trace/kt_sink.h"
#include "replay/verify/verifier.h"
#include "unit/temporary_folder.h"
#include "unit/vector_sink.h"
#include "unit/x86/golden_trace.h"

namespace citcat {
namespace {

namespace fs = std::filesystem;
using TraceBytes = std::vector<std::uint8_t>;

/// Where in the whole trace each instruction begins, with the records before it that belong to it.
struct Cuts final : Observer {
  explicit Cuts(const KtWriter& kt) : writer(kt) {}
  void note(Position now) {
    while (begins.size() <= now.instruction) begins.push_back(writer.size());
  }
  void instruction(const ExecutedInstruction&, Position now) override { note(now); }
  void address_space(AddressSpaceId, Position now) override { note(now); }
  void mapping(LinearAddr, PhysAddr, Position now) override { note(now); }
  const KtWriter& writer;
  std::vector<std::uint64_t> begins;
};

class TraceReaderTest : public test::TemporaryFolder {
 protected:
  /// Imports a machine capture to "r"; false, with a reason, when it is not there.
  bool import_machine(const std::string& name, const std::string& form) {
    const fs::path capture = fs::path(test::shared_data_folder()) / "data/machine" / name;
    if (!fs::exists(capture)) return false;
    ImportOptions options;
    options.capture.internal_path = capture / "side.csv.zst";
    import_capture({capture / ("bus" + form + ".bin.zst")}, options, path("r"));
    return true;
  }
  void import_sample() {
    const fs::path sample = fs::path(CITCAT_SOURCE_DIR) / "samples/ibm5150";
    ImportOptions options;
    options.capture.cpu = CpuModel::i8088;
    options.initial_state_path = sample / "state.json";
    options.start = parse_where("interrupt:0");
    import_capture({sample / "area5150.sr"}, options, path("r"));
  }

  /// Replays all of "r" and keeps its trace, process records included.
  void replay_all() {
    const RecordingFile file = RecordingFile::open(path("r"));
    VectorSink sink;
    KtWriter writer(sink);
    KtOptions options;
    options.process_records = true;
    options.begins_trace = false;
    KtSink trace(writer, options);
    Cuts cuts(writer);
    Verifier verifier(file.recording(), file.evidence(), {});
    Listeners listeners;
    listeners.add(verifier);
    listeners.add(cuts);
    listeners.add(trace);
    Replayer replayer(file.recording(), listeners, {});
    instructions_ = replayer.run().instructions;
    end_ = replayer.machine().position();
    writer.flush();
    cuts.note({instructions_, 0});
    whole_ = sink.all;
    begins_ = cuts.begins;
  }
  void take_checkpoints(std::uint64_t every, std::uint64_t max_bytes = 1 << 26) {
    const RecordingFile file = RecordingFile::open(path("r"));
    Replayer replayer(file.recording(), nullptr, {});
    CheckpointTaker taker(file.recording(), {every, max_bytes});
    while (taker.next() <= instructions_) {
      replayer.run_to(taker.next());
      taker.take(replayer);
    }
    taker.append_to(path("r"), end_, {});
  }
  /// The trace of [from, to) from the nearest checkpoint. `started`: where that is.
  TraceBytes part(std::uint64_t from, std::uint64_t to, std::uint64_t& started) const {
    const RecordingFile file = RecordingFile::open(path("r"));
    const Checkpoints checkpoints(file);
    VectorSink sink;
    KtWriter writer(sink);
    KtOptions options;
    options.process_records = true;
    options.begins_trace = false;
    options.from = from;
    options.to = to;
    KtSink trace(writer, options);
    Replayer replayer(file.recording(), &trace, {});
    const auto start = checkpoints.start_for({from, to});
    started = start ? start->instruction : 0;
    if (start) checkpoints.restore(*start, replayer);
    replayer.run_to(to);
    writer.flush();
    return sink.all;
  }
  void expect_every_part_is_that_of_the_whole(std::uint64_t every) {
    replay_all();
    take_checkpoints(every);
    std::mt19937 random(11);
    for (int i = 0; i < 12; ++i) {
      std::uint64_t from = random() % instructions_;
      // On a checkpoint, and one off it, are where mistakes would be.
      if (i % 4 == 1) from = from / every * every;
      if (i % 4 == 2) from = std::min(from / every * every + 1, instructions_ - 1);
      const std::uint64_t to = std::min(instructions_, from + 1 + random() % (2 * every));
      std::uint64_t started = 0;
      const TraceBytes found = part(from, to, started);
      const TraceBytes expected(whole_.begin() + static_cast<std::ptrdiff_t>(begins_[from]),
                                whole_.begin() + static_cast<std::ptrdiff_t>(begins_[to]));
      EXPECT_TRUE(found == expected) << "[" << from << ", " << to << ") from " << started;
      EXPECT_EQ(started, from == 0 ? 0 : (from - 1) / every * every);
    }
  }

  TraceBytes whole_;
  std::vector<std::uint64_t> begins_;
  std::uint64_t instructions_ = 0;
  Position end_;
};

TEST_F(TraceReaderTest, APartOfAnOperatingSystemsTraceIsThatOfTheWhole) {
  if (!import_machine("lin_user_tiny", "B")) GTEST_SKIP() << "lin_user_tiny is absent";
  expect_every_part_is_that_of_the_whole(4999);
}

TEST_F(TraceReaderTest, APartOfAFirmwaresTraceIsThatOfTheWhole) {
  if (!import_machine("bios486_tiny", "C")) GTEST_SKIP() << "bios486_tiny is absent";
  expect_every_part_is_that_of_the_whole(3000);
}

TEST_F(TraceReaderTest, APartOfProcessesComingAndGoingIsThatOfTheWhole) {
  if (!import_machine("lin_procs_small", "B")) GTEST_SKIP() << "lin_procs_small is absent";
  expect_every_part_is_that_of_the_whole(90001);
}

TEST_F(TraceReaderTest, CheckpointsKeepWithinTheirSize) {
  if (!import_machine("lin_user_tiny", "B")) GTEST_SKIP() << "lin_user_tiny is absent";
  replay_all();
  const auto before = fs::file_size(path("r"));
  take_checkpoints(500, 100000);
  EXPECT_LE(fs::file_size(path("r")) - before, 105000U);
  const RecordingFile file = RecordingFile::open(path("r"));
  const Checkpoints checkpoints(file);
  EXPECT_GE(checkpoints.count(), 5U);
  std::uint64_t started = 0;
  const TraceBytes found = part(40000, 40100, started);
  EXPECT_GT(started, 0U);
  EXPECT_TRUE(found == TraceBytes(whole_.begin() + static_cast<std::ptrdiff_t>(begins_[40000]),
                                  whole_.begin() + static_cast<std::ptrdiff_t>(begins_[40100])));
}

/// Runs `replay` as it is verified and as it goes on from a checkpoint.
TEST_F(TraceReaderTest, TakesResultsOverAgainThatOnlyTheBusTold) {
  if (!import_machine("lin_fpu_small", "B")) GTEST_SKIP() << "lin_fpu_small is absent";
  const RecordingFile file = RecordingFile::open(path("r"));
  constexpr std::uint64_t kEvery = 1000;
  VectorSink sink;
  KtWriter writer(sink);
  KtSink trace(writer, KtOptions{});
  Cuts cuts(writer);
  Verifier verifier(file.recording(), file.evidence(), {});
  Listeners listeners;
  listeners.add(verifier);
  listeners.add(cuts);
  listeners.add(trace);
  ReplayOptions options;
  options.evidence = [&file] { return file.evidence(); };
  Replayer replayer(file.recording(), listeners, options);
  CheckpointTaker taker(file.recording(), {kEvery, 1 << 26});
  while (replayer.run_to(taker.next()).instructions == taker.next()) taker.take(replayer);
  writer.flush();
  instructions_ = replayer.machine().position().instruction;
  cuts.note({instructions_, 0});
  ASSERT_FALSE(verifier.adoptions().empty());
  taker.append_to(path("r"), {instructions_, 0}, verifier.adoptions());
  const CpuState end_state = replayer.machine().save();

  const RecordingFile with = RecordingFile::open(path("r"));
  const Checkpoints checkpoints(with);
  const std::uint64_t first = verifier.adoptions().front().position.instruction;
  for (const std::uint64_t from : {first / kEvery * kEvery + 1, first + 1, instructions_ - 1}) {
    const auto start = checkpoints.start_for({from, instructions_});
    ASSERT_TRUE(start) << from;
    EXPECT_FALSE(checkpoints.start_for({from, instructions_}, true));
    const auto adoptions = checkpoints.adoptions_from(*start);
    VectorSink part;
    KtWriter part_writer(part);
    KtOptions wanted;
    wanted.from = from;
    KtSink part_trace(part_writer, wanted);
    Listeners again;
    if (adoptions) again.add(*adoptions);
    again.add(part_trace);
    Replayer second(with.recording(), again, {});
    checkpoints.restore(*start, second);
    second.run_to(instructions_);
    part_writer.flush();
    EXPECT_TRUE(part.all ==
                TraceBytes(sink.all.begin() + static_cast<std::ptrdiff_t>(cuts.begins[from]),
                           sink.all.end()));
    EXPECT_TRUE(second.machine().save() == end_state) << from;
  }
}

TEST_F(TraceReaderTest, EndsWhereTheEvidenceEndedWithinARep) {
  import_sample();
  std::vector<TraceRecord> all;
  for (const TraceRecord& record : TraceReader(path("r"))) all.push_back(record);
  const Position last = all.back().position;
  ASSERT_GT(last.iteration, 0U);
  replay_all();
  {
    const RecordingFile file = RecordingFile::open(path("r"));
    Replayer replayer(file.recording(), nullptr, {});
    CheckpointTaker taker(file.recording(), {100, 1 << 26});
    while (taker.next() < last.instruction) {
      replayer.run_to(taker.next());
      taker.take(replayer);
    }
    taker.append_to(path("r"), {last.instruction, last.iteration + 1}, {});
  }
  TraceReader reader(path("r"));
  reader.seek(550);
  auto expected = std::find_if(all.begin(), all.end(),
                               [](const TraceRecord& r) { return r.position.instruction == 550; });
  for (const TraceRecord& found : reader) {
    ASSERT_TRUE(expected != all.end());
    ASSERT_EQ(found.record, expected->record);
    ASSERT_EQ(found.position, expected->position);
    ++expected;
  }
  EXPECT_TRUE(expected == all.end());
}

TEST_F(TraceReaderTest, ReadsARecordingAsItsTrace) {
  import_sample();
  replay_all();
  TraceReaderOptions options;
  options.process_records = true;
  TraceReader reader(path("r"), options);
  TraceRecord first;  // the process it begins with, which a sink without the machine does not know
  ASSERT_TRUE(reader.next(first));
  EXPECT_EQ(first.record.kind, KtRecord::Kind::process);
  KtReader expected(whole_, "whole");
  KtRecord record;
  for (const TraceRecord& found : reader) {
    ASSERT_TRUE(expected.next(record));
    ASSERT_EQ(found.record, record);
  }
  EXPECT_FALSE(expected.next(record));
}

TEST_F(TraceReaderTest, StopsComparingOnTheWayWithoutChangingARecord) {
  if (!import_machine("lin_user_tiny", "B")) GTEST_SKIP() << "lin_user_tiny is absent";
  TraceReaderOptions options;
  options.process_records = options.events = true;
  std::vector<TraceRecord> all;
  for (const TraceRecord& record : TraceReader(path("r"), options)) all.push_back(record);
  const auto expect_the_same = [&](std::uint64_t verify_after) {
    options.verify_after = verify_after;
    auto expected = all.begin();
    for (const TraceRecord& found : TraceReader(path("r"), options)) {
      ASSERT_TRUE(expected != all.end());
      ASSERT_EQ(found.position, expected->position);
      ASSERT_EQ(found.is_event, expected->is_event);
      ASSERT_EQ(found.record, expected->record);
      ++expected;
    }
    EXPECT_TRUE(expected == all.end());
  };
  const auto before = fs::file_size(path("r"));
  expect_the_same(std::uint64_t{1} << 15);  // in the middle
  EXPECT_GT(fs::file_size(path("r")), before) << "it is remembered";
  const auto remembered = fs::file_size(path("r"));
  expect_the_same(0);  // from the beginning, by what is remembered
  EXPECT_EQ(fs::file_size(path("r")), remembered);
}

TEST_F(TraceReaderTest, SeeksForwardsAndBackwardsInARecordingAndInItsTraces) {
  import_sample();
  replay_all();
  std::vector<TraceRecord> all;
  for (const TraceRecord& record : TraceReader(path("r"))) all.push_back(record);
  ASSERT_GT(all.size(), 1000U);
  for (const bool with_checkpoints : {false, true}) {
    if (with_checkpoints) take_checkpoints(70);
    TraceReader reader(path("r"));
    std::mt19937 random(2);
    for (int i = 0; i < 10; ++i) {
      const std::size_t at = random() % all.size();
      reader.seek(all[at].position.instruction);
      TraceRecord found;
      ASSERT_TRUE(reader.next(found));
      // A REP has several records; the first is the one.
      std::size_t first = at;
      while (first > 0 && all[first - 1].position.instruction == all[at].position.instruction) {
        --first;
      }
      EXPECT_EQ(found.position, all[first].position);
      EXPECT_EQ(found.record, all[first].record);
      // Some of what follows, so that the next seek begins elsewhere.
      for (std::size_t n = 1; n < random() % 2000 && first + n < all.size(); ++n) {
        ASSERT_TRUE(reader.next(found));
        ASSERT_EQ(found.record, all[first + n].record);
      }
    }
    reader.seek(instructions_ + 5);
    TraceRecord none;
    EXPECT_FALSE(reader.next(none));
    reader.seek(0);
    ASSERT_TRUE(reader.next(none));
    EXPECT_EQ(none.record, all[0].record);
  }
  for (const char* name : {"t.kt", "t.ktz", "t.kt.zst"}) {
    const auto sink = open_trace_sink(path(name));
    sink->write(whole_);
    sink->finish();
    TraceReader reader(path(name));
    for (const std::size_t at :
         {std::size_t{500}, std::size_t{3}, all.size() - 1, all.size() / 2}) {
      reader.seek(all[at].position);
      const auto expected = std::find_if(all.begin(), all.end(), [&](const TraceRecord& r) {
        return r.position >= all[at].position;
      });
      TraceRecord found;
      do {
        ASSERT_TRUE(reader.next(found));
      } while (found.record.kind != KtRecord::Kind::instruction);
      EXPECT_EQ(found.record, expected->record) << name;
      EXPECT_EQ(found.position, expected->position) << name;
    }
  }
}

TEST_F(TraceReaderTest, SaysThatAReplayWentAnotherWay) {
  import_sample();
  {
    // The same recording with digests of another run in place of its evidence.
    const RecordingFile file = RecordingFile::open(path("r"));
    RecordingFileOptions options;
    options.evidence = EvidenceMode::digests;
    RecordingFileWriter(path("slim"), options)
        .finish(file.recording(), std::vector<ReplayDigest>{{600, 42}});
  }
  TraceReader reader(path("slim"));
  TraceRecord record;
  EXPECT_THROW(
      {
        while (reader.next(record)) {
        }
      },
      TraceDiverged);
  EXPECT_THROW(reader.next(record), TraceDiverged);
}

}  // namespace
}  // namespace citcat
