#include "events/placement.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "events/archive/recording_file.h"
#include "formats/io/byte_reader.h"
#include "formats/io/error.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

std::vector<PlacedEvent> some_events() {
  return {{0, Placement::unique, {12, 0}, 1, false, {}},
          {2, Placement::equivalent, {900, 3}, 7, true, {{901, 0}, {902, 65535}}},
          {3, Placement::ambiguous, {std::uint64_t{1} << 40, 0}, 2, false, {{5, 5}}},
          {4, Placement::none, {}, 0, false, {}},
          {5, Placement::absent, {1000, 0}, 0, false, {}}};
}

Recording with_interrupts(std::size_t count) {
  Recording recording;
  recording.initial.model = CpuModel::i486;
  recording.interrupts.resize(count);
  return recording;
}

TEST(Placements, ComeBackAsTheyWereWritten) {
  const auto payload = encode_placements(some_events());
  ByteReader in(payload, "payload");
  EXPECT_EQ(decode_placements(in), some_events());
}

TEST(Placements, EveryCutIsAnError) {
  const auto payload = encode_placements(some_events());
  for (std::size_t size = 0; size < payload.size(); ++size) {
    ByteReader in(std::span<const std::uint8_t>(payload.data(), size), "payload");
    EXPECT_THROW(decode_placements(in), FormatError) << size;
  }
}

TEST(Placements, AreNotAppliedToARecordingWithFewerInterrupts) {
  Recording recording = with_interrupts(4);
  EXPECT_FALSE(apply_placements(some_events(), recording));
  for (const Interrupt& i : recording.interrupts) EXPECT_FALSE(i.position_known);
}

TEST(Placements, GivePositionsToWhatWasPlacedAlone) {
  Recording recording = with_interrupts(6);
  ASSERT_TRUE(apply_placements(some_events(), recording));
  EXPECT_TRUE(recording.interrupts[0].position_known);
  EXPECT_FALSE(recording.interrupts[1].position_known);
  EXPECT_EQ(recording.interrupts[2].position, (Position{900, 3}));
  EXPECT_FALSE(recording.interrupts[4].position_known);
}

TEST(Placements, MakeAnAbsentInterruptNone) {
  Recording recording = with_interrupts(6);
  recording.interrupts[5].kind = Interrupt::Kind::on_chip;
  ASSERT_TRUE(apply_placements(some_events(), recording));
  EXPECT_EQ(recording.interrupts[5].kind, Interrupt::Kind::none);
  EXPECT_TRUE(recording.interrupts[5].position_known);
}

using PlacementsInArchive = test::TemporaryFolder;

TEST_F(PlacementsInArchive, CountWhenItIsOpened) {
  const std::string archive_path = path("x.citcat");
  RecordingFileWriter writer(archive_path);
  writer.finish(with_interrupts(6));
  const Hash128 identity = RecordingFile::open(archive_path).identity();
  {
    RecordingAppender archive(archive_path);
    archive.add_placements(std::vector<PlacedEvent>{{0, Placement::unique, {1, 0}, 1, false, {}}});
    archive.finish();
  }
  {
    RecordingAppender archive(archive_path);
    archive.add_placements(some_events());
    archive.finish();
  }
  const RecordingFile file = RecordingFile::open(archive_path);
  EXPECT_EQ(file.placements(), some_events()) << "the latest counts";
  EXPECT_EQ(file.recording().interrupts[0].position, (Position{12, 0}));
  EXPECT_EQ(file.identity(), identity);
}

TEST_F(PlacementsInArchive, OfAnotherRecordingAreRefused) {
  const std::string archive_path = path("x.citcat");
  RecordingFileWriter writer(archive_path);
  writer.finish(with_interrupts(2));
  RecordingAppender archive(archive_path);
  archive.add_placements(some_events());
  archive.finish();
  EXPECT_THROW(RecordingFile::open(archive_path), FormatError);
}

}  // namespace
}  // namespace citcat
