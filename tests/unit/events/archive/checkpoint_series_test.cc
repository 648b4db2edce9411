#include "events/archive/checkpoint_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "events/archive/recording_check.h"
#include "formats/io/error.h"
#include "unit/events/archive/random_recording.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

using ::testing::ElementsAre;

/// Memory of a machine that goes on writing, and every state it was in.
class CheckpointSeriesTest : public test::TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    recording_ = test::RandomRecording(5).recording();
    RecordingFileWriter(path("r")).finish(recording_);
  }

  /// Adds `count` checkpoints, a hundred instructions apart.
  void add(CheckpointSeriesWriter& writer, int count) {
    for (int i = 0; i < count; ++i) {
      change_memory();
      history_.push_back({100 * (history_.size() + 1), state(), memory_});
      writer.add(history_.back().instruction, history_.back().state, memory_);
    }
  }
  std::vector<CheckpointSeries> append(CheckpointSeriesWriter& writer) {
    RecordingAppender archive(path("r"));
    writer.append_to(archive, {"this engine", {100000, 5}, adoptions_});
    archive.finish();
    return CheckpointSeries::read(RecordingFile::open(path("r")));
  }
  /// The checkpoint of `history_` at the entry's place is what the archive gives.
  void expect_as_it_was(const CheckpointSeries& series, std::size_t ordinal) {
    const RecordingFile file = RecordingFile::open(path("r"));
    const StoredCheckpoint found = series.load(file, ordinal);
    expect_as_it_was(found);
    EXPECT_EQ(series.load_state(file, ordinal), found.state);
  }
  void expect_as_it_was(const StoredCheckpoint& found) {
    const StoredCheckpoint& was = history_.at(found.instruction / 100 - 1);
    EXPECT_EQ(found.state, was.state);
    ASSERT_EQ(found.pages.size(), was.pages.size());
    for (const auto& [number, page] : was.pages) {
      ASSERT_TRUE(found.pages.contains(number));
      EXPECT_TRUE(found.pages.at(number)->data == page->data) << "page " << number;
      EXPECT_TRUE(found.pages.at(number)->valid == page->valid) << "page " << number;
    }
  }

  Recording recording_;
  std::vector<StoredCheckpoint> history_;
  const std::vector<Adoption> adoptions_{{{7, 0}, true, PhysAddr{0x1234}, 9},
                                         {{7, 3}, false, PhysAddr{0xfffffff0}, 0xff},
                                         {{std::uint64_t{1} << 40, 0}, true, PhysAddr{1}, 2}};

 private:
  std::vector<std::uint8_t> state() {
    std::vector<std::uint8_t> bytes(random_() % 300);
    for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(random_());
    return bytes;
  }
  /// Some frames change a little, some wholly; among them are those of the initial image.
  void change_memory() {
    std::vector<FrameNumber> numbers{0, 1, 2, 0xfffff, 0x100000, 0xffffffffff};
    for (const auto& [number, page] : recording_.image.pages()) numbers.push_back(number);
    for (std::uint32_t n = 100; n < 300; ++n) numbers.push_back(n);
    for (int i = 0; i < 90; ++i) {
      const FrameNumber number = numbers[random_() % numbers.size()];
      auto page = std::make_shared<MemoryImage::Page>();
      if (const auto known = memory_.find(number); known != memory_.end()) {
        *page = *known->second;
      } else if (const auto* initial = recording_.image.find(number)) {
        *page = *initial;
      }
      const std::size_t changes = random_() % 8 == 0 ? 4096 : random_() % 20;
      for (std::size_t c = 0; c < changes; ++c) {
        const std::size_t at = random_() % kPageSize;
        page->data[at] = static_cast<std::uint8_t>(random_());
        page->valid.set(at);
      }
      memory_[number] = std::move(page);
    }
  }

  SavedPageMap memory_;
  std::mt19937 random_{3};
};

TEST_F(CheckpointSeriesTest, GivesEveryCheckpointBack) {
  CheckpointSeriesWriter writer(initial_pages_of(recording_));
  add(writer, 40);
  const std::vector<CheckpointSeries> all = append(writer);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].run().engine, "this engine");
  EXPECT_EQ(all[0].run().end, (Position{100000, 5}));
  EXPECT_EQ(all[0].run().adoptions, adoptions_);
  ASSERT_EQ(all[0].entries().size(), 40U);
  for (std::size_t i = 0; i < 40; ++i) expect_as_it_was(all[0], i);
}

TEST_F(CheckpointSeriesTest, ReadsACheckpointAsWellFromAnyEarlierOne) {
  CheckpointSeriesWriter writer(initial_pages_of(recording_));
  add(writer, 30);
  const CheckpointSeries series = append(writer).at(0);
  const RecordingFile file = RecordingFile::open(path("r"));
  for (std::size_t from = 0; from < 30; from += 7) {
    const CheckpointSeries::Known known{from, series.load(file, from).pages};
    for (std::size_t to = from + 1; to < 30; to += 3) {
      expect_as_it_was(series.load(file, to, &known));
    }
  }
}

TEST_F(CheckpointSeriesTest, GivesEveryCheckpointBackThatWasKept) {
  CheckpointSeriesWriter writer(initial_pages_of(recording_));
  add(writer, 21);
  const std::uint64_t before = writer.stored_bytes();
  writer.thin_out();
  EXPECT_EQ(writer.size(), 10U);
  EXPECT_LT(writer.stored_bytes(), before);
  add(writer, 8);
  writer.thin_out();
  add(writer, 1);
  const std::vector<CheckpointSeries> all = append(writer);
  std::vector<std::uint64_t> places;
  for (std::size_t i = 0; i < all.at(0).entries().size(); ++i) {
    places.push_back(all[0].entries()[i].instruction);
    expect_as_it_was(all[0], i);
  }
  EXPECT_THAT(places, ElementsAre(400, 800, 1200, 1600, 2000, 2300, 2500, 2700, 2900, 3000));
}

TEST_F(CheckpointSeriesTest, KeepsSeriesApart) {
  CheckpointSeriesWriter first(initial_pages_of(recording_));
  add(first, 3);
  append(first);
  const std::string with_one = load("r");
  CheckpointSeriesWriter second(initial_pages_of(recording_));
  add(second, 2);
  const std::vector<CheckpointSeries> all = append(second);
  EXPECT_EQ(load("r").substr(0, with_one.size()), with_one);
  ASSERT_EQ(all.size(), 2U);
  expect_as_it_was(all[0], 2);
  expect_as_it_was(all[1], 0);
  expect_as_it_was(all[1], 1);
}

TEST_F(CheckpointSeriesTest, LeavesOutWhatDependsOnALostCheckpoint) {
  CheckpointSeriesWriter writer(initial_pages_of(recording_));
  add(writer, 6);
  append(writer);
  const ChunkInfo third = RecordingFile::open(path("r")).checkpoints().at(2);
  std::string bytes = load("r");
  bytes[third.offset + 70] = static_cast<char>(bytes[third.offset + 70] ^ 1);
  store("r", bytes);
  EXPECT_FALSE(check_recording(path("r")).sound());
  repair_recording(path("r"), path("r"));
  const std::vector<CheckpointSeries> all = CheckpointSeries::read(RecordingFile::open(path("r")));
  ASSERT_EQ(all.at(0).entries().size(), 2U);
  expect_as_it_was(all[0], 0);
  expect_as_it_was(all[0], 1);
}

TEST_F(CheckpointSeriesTest, RefusesADamagedCheckpoint) {
  CheckpointSeriesWriter writer(initial_pages_of(recording_));
  add(writer, 3);
  const std::vector<CheckpointSeries> all = append(writer);
  const std::string whole = load("r");
  const ChunkInfo chunk = RecordingFile::open(path("r")).checkpoints().at(1);
  for (std::uint64_t at = 0; at < 56 + chunk.stored_bytes; at += 97) {
    std::string bytes = whole;
    bytes[chunk.offset + at] = static_cast<char>(bytes[chunk.offset + at] ^ 0x40);
    store("r", bytes);
    const RecordingFile file = RecordingFile::open(path("r"));
    EXPECT_THROW(all[0].load(file, 1), FormatError) << at;
  }
}

TEST_F(CheckpointSeriesTest, NeverCrashesOnAnIndexOrCheckpointOfOtherContent) {
  CheckpointSeriesWriter writer(initial_pages_of(recording_));
  add(writer, 2);
  append(writer);
  const RecordingFile good = RecordingFile::open(path("r"));
  const std::vector<std::uint8_t> index = good.checkpoint(good.checkpoint_indexes().at(0));
  const std::vector<std::uint8_t> checkpoint = good.checkpoint(good.checkpoints().at(0));
  std::mt19937 random(9);
  for (int i = 0; i < 60; ++i) {
    // A hash that is right does not make the content right.
    std::vector<std::uint8_t> changed_index = index, changed = checkpoint;
    std::vector<std::uint8_t>& victim = i % 2 == 0 ? changed_index : changed;
    victim[random() % std::min<std::size_t>(victim.size(), 400)] ^=
        static_cast<std::uint8_t>(1 + random() % 255);
    if (i % 3 == 0) victim.resize(random() % victim.size());
    RecordingFileWriter(path("x")).finish(recording_);
    RecordingAppender archive(path("x"));
    archive.add_checkpoint(changed);
    archive.add_checkpoint_index(changed_index);
    archive.finish();
    const RecordingFile file = RecordingFile::open(path("x"));
    try {
      for (const CheckpointSeries& series : CheckpointSeries::read(file)) {
        for (std::size_t n = 0; n < series.entries().size(); ++n) series.load(file, n);
      }
    } catch (const FormatError&) {
    }
  }
}

}  // namespace
}  // namespace citcat
