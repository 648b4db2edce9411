// Archives that are small and claim to be large: what a file says is bounded before it is believed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "events/archive/container.h"
#include "events/archive/evidence_codec.h"
#include "events/archive/recording_check.h"
#include "events/archive/recording_codec.h"
#include "events/archive/recording_file.h"
#include "formats/io/byte_writer.h"
#include "formats/io/column.h"
#include "formats/io/error.h"
#include "formats/io/memory_limit.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

using ::testing::HasSubstr;

class DecompressionBomb : public test::TemporaryFolder {
 protected:
  ~DecompressionBomb() override { set_memory_limit(kDefaultMemoryLimit); }

  void begin(std::uint64_t transactions, std::uint64_t uncounted_values = 0) {
    Recording recording;
    recording.totals.transactions = transactions;
    writer_.emplace(path("bomb"));
    ArchiveMeta meta;
    meta.uncounted_values = uncounted_values;
    meta_ = encode_meta(recording, meta);
    cpu_ = encode_cpu(recording.initial);
  }
  void add(ChunkKind kind, std::vector<std::uint8_t> payload) {
    writer_->add(kind, std::move(payload), ZstdOptions{});
  }
  void finish() {
    add(kMetaChunk, meta_);
    add(kCpuChunk, cpu_);
    writer_->finish();
    writer_.reset();
    EXPECT_LT(std::filesystem::file_size(path("bomb")), 400'000U);
  }
  std::string refusal() const {
    try {
      RecordingFile::open(path("bomb"));
      return "";
    } catch (const FormatError& error) {
      return error.what();
    }
  }
  /// Rows of columns that each are one value.
  static std::vector<std::uint8_t> rows(std::uint64_t count, int columns) {
    ByteWriter out;
    out.varint(count);
    for (int i = 0; i < columns; ++i) {
      out.u8(static_cast<std::uint8_t>(ColumnForm::constant));
      out.varint(1);
    }
    return out.take();
  }

  std::optional<ContainerWriter> writer_;
  std::vector<std::uint8_t> meta_, cpu_;
};

TEST_F(DecompressionBomb, EventsAreBoundByTheTotals) {
  for (const auto& [kind, columns] : {std::pair{kIoReadChunk, 7}, std::pair{kInterruptChunk, 10},
                                      std::pair{kInternalReadChunk, 8}, std::pair{kDigestChunk, 2},
                                      std::pair{kDroppedChunk, 3}}) {
    begin(100);
    for (int i = 0; i < 300; ++i) add(kind, rows(kEventChunkRows, columns));
    finish();
    EXPECT_THAT(refusal(), HasSubstr("as its totals allow")) << chunk_kind_name(kind);
    const RecordingCheck check = check_recording(path("bomb"));
    ASSERT_FALSE(check.sound());
    EXPECT_THAT(check.scan.damage[0].message, HasSubstr("as its totals allow"));
  }
}

TEST_F(DecompressionBomb, TotalsThatLieAreBoundByTheLimit) {
  begin(~std::uint64_t{0});
  for (int i = 0; i < 300; ++i) add(kIoReadChunk, rows(kEventChunkRows, 7));
  finish();
  set_memory_limit(std::uint64_t{100} << 20);
  EXPECT_THAT(refusal(), HasSubstr("--memory-limit"));
}

TEST_F(DecompressionBomb, AnImageOfZerosIsBound) {
  begin(10);
  constexpr std::uint64_t kPages = 4096;
  for (std::uint64_t chunk = 0; chunk < 8; ++chunk) {
    ByteWriter out;
    out.varint(kPages);
    std::vector<std::uint64_t> numbers, counts(kPages, 2), runs;
    for (std::uint64_t i = 0; i < kPages; ++i) {
      numbers.push_back(chunk * kPages + i);
      runs.insert(runs.end(), {0, kPageSize});
    }
    write_column(out, numbers);
    write_column(out, counts);
    out.varint(runs.size());
    write_column(out, runs);
    out.bytes(std::vector<std::uint8_t>(kPages * kPageSize));
    add(kImageChunk, out.take());
  }
  finish();
  EXPECT_THAT(refusal(), HasSubstr("as its totals allow"));
}

TEST_F(DecompressionBomb, CheckDecodesNoMoreEvidenceThanTheTotalsTell) {
  begin(5);
  EvidenceEncoder encoder;
  BusTransaction t;
  while (!encoder.full()) encoder.add({&t, 1});
  for (int i = 0; i < 500; ++i) add(kEvidenceChunk, encoder.encode());
  finish();
  const RecordingCheck check = check_recording(path("bomb"));
  ASSERT_FALSE(check.sound());
  EXPECT_THAT(check.scan.damage[0].message, HasSubstr("expected 5 transactions, found more"));
}

TEST_F(DecompressionBomb, ValuesThatCrossNoBusMayBeManyWhereNobodyCountedInstructions) {
  constexpr std::uint64_t kChunks = 20;
  begin(100, kChunks * kEventChunkRows);
  for (std::uint64_t i = 0; i < kChunks; ++i) add(kInternalReadChunk, rows(kEventChunkRows, 8));
  finish();
  EXPECT_EQ(refusal(), "");
}

TEST_F(DecompressionBomb, WhatFitsIsReadAsBefore) {
  begin(1'000'000);
  for (int i = 0; i < 3; ++i) add(kIoReadChunk, rows(kEventChunkRows, 7));
  finish();
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(RecordingFile::open(path("bomb")).recording().io_reads.size(), 3 * kEventChunkRows);
}

}  // namespace
}  // namespace citcat
