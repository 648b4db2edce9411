#include "formats/kt/kt_zstd.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <random>
#include <vector>

#include "formats/io/error.h"
#include "formats/kt/kt.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Instructions of all lengths and address counts, in a few frames.
Bytes random_kt(std::size_t bytes, std::uint64_t& instructions) {
  std::mt19937 random(7);
  Bytes kt;
  instructions = 0;
  while (kt.size() < bytes) {
    const auto size = static_cast<unsigned>(1 + random() % 15);
    const auto addresses = static_cast<unsigned>(random() % 3);
    Bytes record(kt_fixed_bytes(size) + 4 * addresses);
    record[0] = static_cast<std::uint8_t>(random());
    record[4] = static_cast<std::uint8_t>(addresses << 4 | size);
    record[5] = static_cast<std::uint8_t>(random());
    if (random() % 100 == 0) record = {1, 2, 3, 4, kKtProcess, 0, 0, 0};
    instructions += record[4] < 0x40 ? 1 : 0;
    kt.insert(kt.end(), record.begin(), record.end());
  }
  return kt;
}

class SeekableKt : public test::TemporaryFolder {
 protected:
  void write(const Bytes& kt, std::size_t piece) {
    const auto sink = open_trace_sink(path("t.kt.zst"));
    for (std::size_t at = 0; at < kt.size(); at += piece) {
      sink->write(std::span(kt).subspan(at, std::min(piece, kt.size() - at)));
    }
    sink->finish();
  }
};

TEST_F(SeekableKt, IsKtForWhoeverHasZstd) {
  std::uint64_t instructions = 0;
  const Bytes kt = random_kt(3 * SeekableKtSink::kFrameBytes, instructions);
  write(kt, 1000003);
  const std::string file = load("t.kt.zst");
  Bytes plain;
  std::size_t at = 0;
  while (at < file.size()) {
    const std::size_t size = ZSTD_findFrameCompressedSize(&file[at], file.size() - at);
    ASSERT_FALSE(ZSTD_isError(size));
    const auto content = ZSTD_getFrameContentSize(&file[at], size);
    Bytes frame(content);
    if (content != 0) {
      ASSERT_EQ(ZSTD_decompress(frame.data(), frame.size(), &file[at], size), content);
    }
    plain.insert(plain.end(), frame.begin(), frame.end());
    at += size;
  }
  EXPECT_TRUE(plain == kt);
}

TEST_F(SeekableKt, IsReadFromEveryFrame) {
  std::uint64_t instructions = 0;
  const Bytes kt = random_kt(3 * SeekableKtSink::kFrameBytes, instructions);
  write(kt, kt.size());
  write(kt, 65536);
  const std::vector<KtSegment> segments = read_kt_index(path("t.kt.zst"));
  ASSERT_GT(segments.size(), 2U);
  EXPECT_EQ(segments.back().first_instruction + segments.back().instructions, instructions);
  for (const KtSegment& segment : segments) {
    KtReader found(path("t.kt.zst"), segment.file_offset);
    const std::span<const std::uint8_t> rest(kt.data() + segment.kt_offset,
                                             kt.size() - segment.kt_offset);
    KtReader expected(rest, "kt");
    KtRecord a, b;
    std::uint64_t count = 0;
    while (expected.next(b)) {
      ASSERT_TRUE(found.next(a));
      ASSERT_EQ(a, b);
      count += a.kind == KtRecord::Kind::instruction ? 1 : 0;
    }
    EXPECT_FALSE(found.next(a));
    EXPECT_EQ(segment.first_instruction + count, instructions);
  }
}

std::uint64_t count_instructions(std::span<const std::uint8_t> kt) {
  KtReader reader(kt, "kt");
  KtRecord record;
  std::uint64_t count = 0;
  while (reader.next(record)) count += record.kind == KtRecord::Kind::instruction ? 1 : 0;
  return count;
}

TEST_F(SeekableKt, CountsInstructionsInPiecesThatAreSaidToBeRecordsAndInOthers) {
  std::uint64_t instructions = 0;
  const Bytes kt = random_kt(3 * SeekableKtSink::kFrameBytes, instructions);
  const auto sink = open_trace_sink(path("t.kt.zst"));
  std::mt19937 random(3);
  for (std::size_t at = 0; at < kt.size();) {
    // Up to the end of a record, and, where nothing is said of it, cut in the middle of one too.
    KtReader reader(std::span<const std::uint8_t>(kt).subspan(at), "kt");
    KtRecord record;
    const std::size_t least = 1000 + random() % 400000;
    while (reader.offset() < least && reader.next(record)) {
    }
    const auto piece = std::span<const std::uint8_t>(kt).subspan(at, reader.offset());
    if (random() % 3 != 0) {
      as_trace_sink(*sink)->write_records(piece, count_instructions(piece));
    } else {
      sink->write(piece.first(piece.size() / 2));
      sink->write(piece.subspan(piece.size() / 2));
    }
    at += piece.size();
  }
  sink->finish();
  const std::vector<KtSegment> segments = read_kt_index(path("t.kt.zst"));
  ASSERT_GT(segments.size(), 2U);
  for (const KtSegment& s : segments) {
    EXPECT_EQ(s.instructions, count_instructions(std::span<const std::uint8_t>(kt).subspan(
                                  s.kt_offset, s.kt_bytes)));
  }
  EXPECT_TRUE(read_whole_file(path("t.kt.zst"), 2 * kt.size()) == kt);
}

TEST_F(SeekableKt, HasNoIndexWhereTwoWereJoined) {
  std::uint64_t instructions = 0;
  const Bytes kt = random_kt(1000, instructions);
  write(kt, kt.size());
  store("t.kt.zst", load("t.kt.zst") + load("t.kt.zst"));
  EXPECT_THROW(read_kt_index(path("t.kt.zst")), FormatError);
  EXPECT_EQ(read_whole_file(path("t.kt.zst"), 4 * kt.size()).size(), 2 * kt.size());
}

TEST_F(SeekableKt, RefusesAnIndexOfWhatIsNotThere) {
  KtSegment whole;
  whole.stored_bytes = 100;
  whole.instructions = whole.kt_bytes = 10;
  const auto refused = [&](const KtSegment& segment) {
    const auto index = encode_kt_index(std::vector{whole, segment, whole}, {{100, 10}});
    store("t.kt.zst", std::string(100, 0) + std::string(index.begin(), index.end()));
    try {
      return read_kt_index(path("t.kt.zst")).size() != 3;
    } catch (const FormatError&) {
      return true;
    }
  };
  EXPECT_FALSE(refused(whole));
  KtSegment segment = whole;
  segment.file_offset = 1;
  EXPECT_TRUE(refused(segment));
  segment.file_offset = ~std::uint64_t{0} - 50;
  EXPECT_TRUE(refused(segment));
  segment = whole;
  segment.instructions = ~std::uint64_t{0};
  EXPECT_TRUE(refused(segment));
}

TEST_F(SeekableKt, HoldsAnEmptyTrace) {
  write({}, 1);
  EXPECT_TRUE(read_kt_index(path("t.kt.zst")).empty());
  KtRecord none;
  EXPECT_FALSE(KtReader(path("t.kt.zst")).next(none));
}

TEST_F(SeekableKt, RefusesWhatIsNoKt) {
  EXPECT_THROW(write({1, 2, 3, 4, 0x41, 0, 0, 0}, 8), FormatError);
  EXPECT_THROW(write({1, 2, 3, 4, 0x10, 0, 0, 0}, 8), FormatError);
  EXPECT_THROW(write({1, 2, 3, 4, 0x01}, 5), FormatError);
}

TEST_F(SeekableKt, SaysThatItsIndexIsDamaged) {
  std::uint64_t instructions = 0;
  write(random_kt(1000, instructions), 1000);
  const std::string whole = load("t.kt.zst");
  for (std::size_t cut = 1; cut < 100; ++cut) {
    store("t.kt.zst", whole.substr(0, whole.size() - cut));
    EXPECT_THROW(read_kt_index(path("t.kt.zst")), FormatError) << cut;
  }
  for (std::size_t at = whole.size() - 90; at < whole.size() - 33; ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    store("t.kt.zst", flipped);
    EXPECT_THROW(read_kt_index(path("t.kt.zst")), FormatError) << at;
  }
}

}  // namespace
}  // namespace citcat
