#include "events/archive/recording_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "events/archive/recording_codec.h"
#include "events/archive/recording_file.h"
#include "formats/io/error.h"
#include "unit/events/archive/random_recording.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

using ::testing::HasSubstr;

class RecordingCheckTest : public test::TemporaryFolder {
 protected:
  /// Three chunks of evidence and one of everything else.
  void write() {
    test::RandomRecording random(7);
    recording_ = random.recording();
    RecordingFileWriter writer(path("r"));
    recording_.totals.transactions = 2 * kEvidenceChunkTransactions + 5;
    for (std::uint64_t i = 0; i < recording_.totals.transactions; ++i) {
      writer.write(random.transaction(i));
    }
    writer.finish(recording_);
  }
  ChunkInfo chunk(ChunkKind kind, int nth) const {
    const ContainerReader reader(path("r"));
    for (const ChunkInfo& info : reader.chunks()) {
      if (info.kind == kind && nth-- == 0) return info;
    }
    throw InternalError("no such chunk");
  }
  /// Flips a bit of the chunk's payload, or of its header.
  void damage(const ChunkInfo& info, std::uint64_t at) {
    std::string bytes = load("r");
    bytes[info.offset + at] = static_cast<char>(bytes[info.offset + at] ^ 4);
    store("r", bytes);
  }
  static constexpr std::uint64_t kPayload = 60;

  Recording recording_;
};

TEST_F(RecordingCheckTest, FindsNothingWrongWithAWholeArchive) {
  write();
  const RecordingCheck check = check_recording(path("r"));
  EXPECT_TRUE(check.sound());
  EXPECT_EQ(check.scan.file_bytes, load("r").size());
}

TEST_F(RecordingCheckTest, CanBeEndedFromOutside) {
  write();
  struct Enough {};
  int asked = 0;
  EXPECT_THROW(check_recording(path("r"),
                               [&asked] {
                                 if (++asked == 3) throw Enough();
                               }),
               Enough);
  check_recording(path("r"), [&asked] { ++asked; });
  EXPECT_GT(asked, 6);
}

TEST_F(RecordingCheckTest, NamesTheDamagedChunk) {
  write();
  const ChunkInfo second = chunk(kEvidenceChunk, 1);
  damage(second, kPayload);
  const RecordingCheck check = check_recording(path("r"));
  ASSERT_EQ(check.scan.damage.size(), 1U);
  EXPECT_EQ(check.scan.damage[0].chunk->sequence, second.sequence);
  EXPECT_THAT(check.scan.damage[0].message, HasSubstr("chunk 1 (EVD2)"));
}

TEST_F(RecordingCheckTest, FindsChunksThatAreIntactButNoRecording) {
  ContainerWriter writer(path("r"));
  writer.add(kCpuChunk, std::vector<std::uint8_t>{1, 2, 3}, ZstdOptions{});
  writer.finish();
  EXPECT_FALSE(check_recording(path("r")).sound());
}

TEST_F(RecordingCheckTest, FindsHintsThatMeanNothingInTheirRecording) {
  write();
  RecordingAppender archive(path("r"));
  HintFile hints;
  hints.hints.emplace_back().kind = Hint::Kind::no_interrupt;
  archive.add_hints(hints);
  archive.finish();
  EXPECT_FALSE(check_recording(path("r")).sound());
  EXPECT_THROW(RecordingFile::open(path("r")), FormatError);
}

TEST_F(RecordingCheckTest, FindsALossThatCannotBeRead) {
  ContainerWriter writer(path("r"));
  writer.add(kLostChunk, std::vector<std::uint8_t>{1}, ZstdOptions{});
  writer.finish();
  const RecordingCheck check = check_recording(path("r"));
  EXPECT_EQ(check.scan.damage.size(), 1U);
}

TEST_F(RecordingCheckTest, FindsThatATransactionIsMissing) {
  test::RandomRecording random(7);
  Recording recording = random.recording();
  recording.totals.transactions = 3;
  RecordingFileWriter writer(path("r"));
  writer.write(random.transaction(0));
  writer.write(random.transaction(1));
  writer.finish(recording);
  const RecordingCheck check = check_recording(path("r"));
  ASSERT_EQ(check.scan.damage.size(), 1U);
  EXPECT_THAT(check.scan.damage[0].message, HasSubstr("expected 3 transactions, found 2"));
}

TEST_F(RecordingCheckTest, RepairsALostIndexCompletely) {
  write();
  const std::string whole = load("r");
  store("r", whole.substr(0, whole.size() - 20));
  EXPECT_THROW(RecordingFile::open(path("r")), FormatError);
  repair_recording(path("r"), path("saved"));
  EXPECT_TRUE(check_recording(path("saved")).sound());
  test::expect_equal(recording_, RecordingFile::open(path("saved")).recording());
}

TEST_F(RecordingCheckTest, SaysInTheRepairedArchiveWhatWasLost) {
  for (const std::uint64_t where : {kPayload, std::uint64_t{9}}) {
    write();
    damage(chunk(kEvidenceChunk, 1), where);
    repair_recording(path("r"), path("saved"));
    const RecordingFile saved = RecordingFile::open(path("saved"));
    ASSERT_EQ(saved.recording().warnings.size(), recording_.warnings.size() + 1);
    EXPECT_THAT(saved.recording().warnings.back(), HasSubstr("lost"));
    EXPECT_EQ(check_recording(path("saved")).losses.size(), 1U);
    // The evidence before the gap is there; behind it, nothing is taken for its continuation.
    const auto evidence = saved.evidence();
    BusTransaction t;
    std::uint64_t read = 0;
    EXPECT_THROW(
        {
          while (evidence->next(t)) ++read;
        },
        FormatError);
    EXPECT_EQ(read, kEvidenceChunkTransactions);
  }
}

TEST_F(RecordingCheckTest, RefusesToMakeARecordingWithoutProcessorState) {
  write();
  damage(chunk(kCpuChunk, 0), kPayload);
  EXPECT_THROW(repair_recording(path("r"), path("saved")), FormatError);
  EXPECT_EQ(names(), std::vector<std::string>{"r"});
}

}  // namespace
}  // namespace citcat
