#include "events/archive/recording_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "events/archive/container.h"
#include "formats/io/error.h"
#include "unit/events/archive/random_recording.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

using test::RandomRecording;

class RecordingFileTest : public test::TemporaryFolder {
 protected:
  std::string path() const { return TemporaryFolder::path("test.citcat"); }

  void write(const Recording& recording, const std::vector<BusTransaction>& evidence) {
    RecordingFileWriter writer(path());
    for (const BusTransaction& t : evidence) writer.write(t);
    writer.finish(recording);
  }

  std::string load() const { return TemporaryFolder::load("test.citcat"); }
  void store(const std::string& bytes) const { TemporaryFolder::store("test.citcat", bytes); }

  /// Reads all there is to read; the first error, or "" when there was none.
  std::string read_all() const {
    try {
      const RecordingFile file = RecordingFile::open(path());
      const auto evidence = file.evidence();
      for (BusTransaction t; evidence->next(t);) {
      }
      if (file.container().unfinished_append()) return "unfinished append";
      return "";
    } catch (const FormatError& error) {
      return error.what();
    }
  }

  /// A small archive with something in every chunk.
  void write_small() {
    RandomRecording random(7);
    const Recording recording = random.recording();
    std::vector<BusTransaction> evidence;
    for (std::uint64_t i = 0; i < 20; ++i) evidence.push_back(random.transaction(i));
    write(recording, evidence);
  }
};

TEST_F(RecordingFileTest, GivesBackEveryFieldOfRandomRecordings) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomRecording random(seed);
    Recording expected = random.recording();
    expected.ending = static_cast<Ending>(seed % 8);
    std::vector<BusTransaction> evidence;
    for (std::uint64_t i = 0; i < seed * 10; ++i) {
      evidence.push_back(random.transaction(seed % 3 == 0 ? i * i : i));
    }
    write(expected, evidence);
    const RecordingFile file = RecordingFile::open(path());
    test::expect_equal(expected, file.recording());
    const auto reader = file.evidence();
    BusTransaction found;
    for (const BusTransaction& t : evidence) {
      ASSERT_TRUE(reader->next(found));
      test::expect_equal_evidence(t, found);
    }
    EXPECT_FALSE(reader->next(found));
  }
}

TEST_F(RecordingFileTest, StreamsEvidenceOfManyChunksWithSeveralCursors) {
  constexpr std::uint64_t kCount = 3 * kEvidenceChunkTransactions + 17;
  {
    RecordingFileWriter writer(path());
    RandomRecording random(1);
    for (std::uint64_t i = 0; i < kCount; ++i) writer.write(random.transaction(i));
    writer.finish(Recording{});
  }
  const RecordingFile file = RecordingFile::open(path());
  const auto first = file.evidence();
  const auto second = file.evidence();
  RandomRecording random(1);
  BusTransaction a, b;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(first->next(a));
    ASSERT_TRUE(second->next(b));
    test::expect_equal_evidence(random.transaction(i), a);
    ASSERT_EQ(a.address, b.address);
  }
  EXPECT_FALSE(first->next(a));
  EXPECT_FALSE(second->next(b));
}

TEST_F(RecordingFileTest, GivesBackSeveralRecordingsOfWhichSomeHaveNoEvidence) {
  constexpr std::size_t kRecordings = 9;
  for (const std::size_t with_evidence : {1u, 2u, 3u, 100u}) {
    {
      RecordingFileWriter writer(path());
      RandomRecording random(1);
      for (std::size_t i = 0; i < kRecordings; ++i) {
        writer.select(i);
        if (i % with_evidence == with_evidence - 1) writer.write(random.transaction(i));
      }
      for (std::size_t i = 0; i < kRecordings; ++i) {
        Recording recording;
        recording.initial.eip = static_cast<std::uint32_t>(i);
        writer.select(i);
        writer.add(recording);
      }
      writer.close();
    }
    for (std::size_t i = 0; i < kRecordings; ++i) {
      const RecordingFile file = RecordingFile::open(path() + "@" + std::to_string(i));
      EXPECT_EQ(file.recordings(), kRecordings);
      EXPECT_EQ(file.recording().initial.eip, i);
      BusTransaction t;
      EXPECT_EQ(file.evidence()->next(t), i % with_evidence == with_evidence - 1) << i;
    }
  }
}

TEST_F(RecordingFileTest, IsTheSameBytesForTheSameRecording) {
  write_small();
  const std::string once = load();
  write_small();
  EXPECT_EQ(once, load());
}

TEST_F(RecordingFileTest, LeavesTheOldFileWhenItIsNotFinished) {
  store("old");
  {
    RecordingFileWriter writer(path());
    RandomRecording random(1);
    for (std::uint64_t i = 0; i < 2 * kEvidenceChunkTransactions; ++i) {
      writer.write(random.transaction(i));
    }
  }
  EXPECT_EQ(load(), "old");
  const auto files = std::filesystem::directory_iterator(folder_);
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(RecordingFileTest, FindsACutAtEveryLength) {
  write_small();
  const std::string whole = load();
  EXPECT_EQ(read_all(), "");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    store(whole.substr(0, length));
    EXPECT_NE(read_all(), "") << "cut to " << length << " bytes";
  }
}

TEST_F(RecordingFileTest, FindsAFlipOfEveryByte) {
  write_small();
  const std::string whole = load();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << i % 8));
    store(flipped);
    EXPECT_NE(read_all(), "") << "byte " << i;
  }
}

TEST_F(RecordingFileTest, AppendsDigestsAndCheckpointsWithoutWritingOldBytesAgain) {
  write_small();
  const std::string old = load();
  const std::vector<ReplayDigest> digests{{10, 1}, {20, ~std::uint64_t{0}}};
  RecordingAppender appender(path());
  appender.add_checkpoint({1, 2, 3});
  appender.add_digests(digests);
  appender.add_checkpoint(std::vector<std::uint8_t>(100000, 7));
  appender.finish();
  EXPECT_EQ(load().substr(0, old.size()), old);
  const RecordingFile file = RecordingFile::open(path());
  EXPECT_EQ(file.digests(), digests);
  ASSERT_EQ(file.checkpoints().size(), 2U);
  EXPECT_EQ(file.checkpoint(file.checkpoints()[1]), std::vector<std::uint8_t>(100000, 7));
  EXPECT_EQ(read_all(), "");
}

TEST_F(RecordingFileTest, KeepsInALeanArchiveWhatAReplayNeeds) {
  const Recording full = RandomRecording(3).recording();
  RecordingFileOptions options;
  options.evidence = EvidenceMode::digests;
  options.lean = true;
  RecordingFileWriter writer(path(), options);
  writer.write(RandomRecording(1).transaction(0));
  const std::vector<ReplayDigest> digests{{5, 6}};
  writer.finish(full, digests);
  const RecordingFile file = RecordingFile::open(path());
  EXPECT_TRUE(file.meta().lean);
  EXPECT_EQ(file.digests(), digests);
  EXPECT_THROW(file.evidence(), UsageError);
  const Recording& lean = file.recording();
  EXPECT_TRUE(lean.initial == full.initial);
  test::expect_equal(full.image, lean.image);
  ASSERT_EQ(lean.interrupts.size(), full.interrupts.size());
  for (std::size_t i = 0; i < full.interrupts.size(); ++i) {
    EXPECT_EQ(lean.interrupts[i].vector, full.interrupts[i].vector);
    EXPECT_EQ(lean.interrupts[i].position, full.interrupts[i].position);
    if (full.interrupts[i].position_known) continue;
    EXPECT_TRUE(lean.interrupts[i].anchor == full.interrupts[i].anchor);
  }
  ASSERT_EQ(lean.io_reads.size(), full.io_reads.size());
  for (std::size_t i = 0; i < full.io_reads.size(); ++i) {
    EXPECT_EQ(lean.io_reads[i].port, full.io_reads[i].port);
    EXPECT_EQ(lean.io_reads[i].size, full.io_reads[i].size);
    EXPECT_EQ(lean.io_reads[i].value, full.io_reads[i].value);
  }
  ASSERT_EQ(lean.internal_reads.size(), full.internal_reads.size());
  for (std::size_t i = 0; i < full.internal_reads.size(); ++i) {
    EXPECT_EQ(lean.internal_reads[i].op, full.internal_reads[i].op);
    EXPECT_EQ(lean.internal_reads[i].eax, full.internal_reads[i].eax);
    EXPECT_EQ(lean.internal_reads[i].edx, full.internal_reads[i].edx);
  }
}

TEST_F(RecordingFileTest, SaysWhatIsMissingFromAnArchiveOfSomethingElse) {
  ContainerWriter other(path());
  other.add(chunk_kind("INTR"), std::vector<std::uint8_t>{0}, ZstdOptions{});
  other.finish();
  EXPECT_THAT(read_all(), ::testing::HasSubstr("expected a recording"));
}

}  // namespace
}  // namespace citcat
