#include "formats/io/input.h"

#include <bzlib.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lzma.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <thread>

#include "formats/io/error.h"
#include "formats/io/zstd_sink.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;

Bytes sample(std::size_t size) {
  std::mt19937 random(5);
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::uint8_t>(i % 97 == 0 ? random() : i / 512);
  }
  return bytes;
}

Bytes gzip(const Bytes& plain) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  Bytes out(deflateBound(&stream, plain.size()) + 64);
  stream.next_in = const_cast<Bytef*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

Bytes xz(const Bytes& plain) {
  Bytes out(lzma_stream_buffer_bound(plain.size()));
  std::size_t size = 0;
  EXPECT_EQ(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, nullptr, plain.data(), plain.size(),
                                    out.data(), &size, out.size()),
            LZMA_OK);
  out.resize(size);
  return out;
}

Bytes bzip2(const Bytes& bytes) {
  Bytes plain = bytes;
  Bytes out(plain.size() + plain.size() / 100 + 600);  // as much as libbz2's manual asks for
  const std::size_t plain_size = plain.size();
  plain.push_back(0);  // libbz2 wants an address of nothing, too
  auto size = static_cast<unsigned>(out.size());
  EXPECT_EQ(BZ2_bzBuffToBuffCompress(reinterpret_cast<char*>(out.data()), &size,
                                     reinterpret_cast<char*>(plain.data()),
                                     static_cast<unsigned>(plain_size), 1, 0, 0),
            BZ_OK);
  out.resize(size);
  return out;
}

Bytes zstd(const Bytes& plain) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  Bytes out(ZSTD_compressBound(plain.size()));
  out.resize(ZSTD_compress2(context, out.data(), out.size(), plain.data(), plain.size()));
  ZSTD_freeCCtx(context);
  return out;
}

Bytes plus(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Bytes read_all(InputStream& in) {
  Bytes all;
  for (auto block = in.next_block(); !block.empty(); block = in.next_block()) {
    all.insert(all.end(), block.begin(), block.end());
  }
  return all;
}

struct Packer {
  const char* name;
  Bytes (*pack)(const Bytes&);
  Compression compression;
};
class CompressedInput : public ::testing::TestWithParam<Packer> {};
INSTANTIATE_TEST_SUITE_P(All, CompressedInput,
                         ::testing::Values(Packer{"gzip", gzip, Compression::gzip},
                                           Packer{"bzip2", bzip2, Compression::bzip2},
                                           Packer{"xz", xz, Compression::xz},
                                           Packer{"zstd", zstd, Compression::zstd}),
                         [](const auto& which) { return std::string(which.param.name); });

TEST_P(CompressedInput, GivesThePlainBytesAndHashesTheStoredOnes) {
  for (const std::size_t size : {0U, 1U, 1000U, 3000000U}) {
    const Bytes plain = sample(size);
    const Bytes stored = GetParam().pack(plain);
    InputStream in(stored, "memory");
    EXPECT_EQ(in.compression(), GetParam().compression);
    EXPECT_EQ(read_all(in), plain);
    EXPECT_EQ(in.offset(), plain.size());
    EXPECT_EQ(in.stored_bytes(), stored.size());
    EXPECT_EQ(in.stored_hash(), hash128(stored));
  }
}

TEST_P(CompressedInput, ReadsConcatenatedStreamsAsOne) {
  const Bytes a = sample(70000), b = sample(300);
  const Bytes stored = plus(GetParam().pack(a), GetParam().pack(b));
  InputStream in(stored, "memory");
  EXPECT_EQ(read_all(in), plus(a, b));
}

TEST_P(CompressedInput, NeverTakesACutStreamForAWholeOne) {
  const Bytes plain = sample(3000);
  const Bytes stored = GetParam().pack(plain);
  for (std::size_t size = 6; size < stored.size(); ++size) {
    const Bytes cut(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(size));
    InputStream in(cut, "cut.bin");
    EXPECT_THAT([&] { read_all(in); }, ::testing::ThrowsMessage<FormatError>(HasSubstr(
                                           "cut.bin:" + std::to_string(size) + ": in the")))
        << size << " of " << stored.size();
  }
}

TEST_P(CompressedInput, NeverTakesACutStreamAfterAWholeOneForTheEnd) {
  const Bytes plain = sample(3000);
  const Bytes one = GetParam().pack(plain);
  const Bytes two = plus(one, one);
  for (std::size_t size = one.size() + 1; size < two.size(); ++size) {
    const Bytes cut(two.begin(), two.begin() + static_cast<std::ptrdiff_t>(size));
    InputStream in(cut, "cut.bin");
    EXPECT_THROW(read_all(in), FormatError) << size << " of " << two.size();
  }
}

TEST_P(CompressedInput, SaysAgainThatItIsCutWhenItIsAskedAgain) {
  Bytes stored = GetParam().pack(sample(300000));
  stored.resize(stored.size() / 2);
  InputStream in(stored, "cut.bin");
  EXPECT_THROW(read_all(in), FormatError);
  EXPECT_THROW(read_all(in), FormatError);
}

TEST_P(CompressedInput, RefusesAFlippedByteOrGivesTheSame) {
  const Bytes plain = sample(2000);
  const Bytes whole = GetParam().pack(plain);
  for (std::size_t at = 10; at < whole.size(); ++at) {
    Bytes stored = whole;
    stored[at] ^= 0x10;
    InputStream in(stored, "memory");
    try {
      EXPECT_EQ(read_all(in), plain) << at;
    } catch (const FormatError&) {
    }
  }
}

TEST_P(CompressedInput, RefusesSomethingElseAfterTheStream) {
  const Bytes stored = plus(GetParam().pack(sample(500)), {'x', 'y', 'z', 1, 2, 3, 4, 5});
  InputStream in(stored, "memory");
  EXPECT_THROW(read_all(in), FormatError);
}

TEST(InputStream, GivesWhatACutZstdFileHoldsBeforeItSaysSo) {
  const Bytes plain = sample(400000);
  Bytes stored = zstd(plain);
  stored.resize(stored.size() - 1);
  InputStream in(stored, "cut.zst");
  Bytes all(plain.size());
  EXPECT_EQ(in.read(all), plain.size());
  EXPECT_EQ(all, plain);
  EXPECT_THROW(in.at_end(), FormatError);
}

TEST(InputStream, PassesOverSkippableFramesAndNoticesACutOne) {
  const Bytes skippable{0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'};
  const Bytes plain = sample(500);
  Bytes stored = plus(plus(skippable, zstd(plain)), skippable);
  InputStream whole(stored, "memory");
  EXPECT_EQ(read_all(whole), plain);
  stored.pop_back();
  InputStream cut(stored, "memory");
  EXPECT_THROW(read_all(cut), FormatError);
}

TEST(InputStream, ReadsAFrameOfEveryKindOfHeader) {
  const Bytes plain = sample(70000);
  for (const int content_size : {0, 1}) {
    for (const int checksum : {0, 1}) {
      ZSTD_CCtx* const context = ZSTD_createCCtx();
      ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, content_size);
      ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, checksum);
      Bytes stored(ZSTD_compressBound(plain.size()));
      stored.resize(
          ZSTD_compress2(context, stored.data(), stored.size(), plain.data(), plain.size()));
      ZSTD_freeCCtx(context);
      InputStream in(stored, "memory");
      EXPECT_EQ(read_all(in), plain);
    }
  }
}

TEST(InputStream, TakesATextThatBeginsLikeBzip2ForAText) {
  const Bytes plain = test::bytes_of("BZh9 is what a bzip2 file begins with");
  InputStream in(plain, "memory");
  EXPECT_EQ(in.compression(), Compression::none);
}

/// Keeps what is written.
class KeepingSink final : public ByteSink {
 public:
  explicit KeepingSink(Bytes& kept) : kept_(&kept) {}
  void write(std::span<const std::uint8_t> bytes) override {
    kept_->insert(kept_->end(), bytes.begin(), bytes.end());
  }
  void finish() override {}

 private:
  Bytes* kept_;
};

/// A disk that has no room left.
class FullSink final : public ByteSink {
 public:
  void write(std::span<const std::uint8_t>) override { throw IoError("no room"); }
  void finish() override {}
};

TEST(ZstdSink, WritesAFrameWithAChecksumThatIsTheSameStreamWhenRead) {
  const Bytes plain = sample(900000);
  Bytes stored;
  ZstdSink sink(std::make_unique<KeepingSink>(stored), 1, 2);
  for (std::size_t at = 0; at < plain.size(); at += 100000) {
    sink.write(std::span(plain).subspan(at, 100000));
  }
  sink.finish();
  EXPECT_NE(stored[4] & 4, 0) << "RFC 8878, 3.1.1.1.1: the flag of a checksum";
  InputStream in(stored, "memory");
  EXPECT_EQ(read_all(in), plain);
}

TEST(ZstdSink, LeavesTheFrameWithoutItsEndWhenItIsGivenUp) {
  const Bytes plain = sample(900000);
  Bytes stored;
  {
    ZstdSink sink(std::make_unique<KeepingSink>(stored), 1, 0);
    sink.write(plain);
  }
  ASSERT_FALSE(stored.empty());
  InputStream in(stored, "memory");
  EXPECT_THROW(read_all(in), FormatError);
}

TEST(ZstdSink, SaysThatWhatItHeldBackCouldNotBeWritten) {
  ZstdSink sink(std::make_unique<FullSink>(), 1, 0);
  sink.write(sample(10));
  EXPECT_THROW(sink.finish(), IoError);
}

TEST(InputStream, GivesPlainFilesAsTheyAre) {
  const Bytes plain = sample(1000000);
  InputStream in(plain, "memory");
  EXPECT_EQ(in.compression(), Compression::none);
  EXPECT_EQ(read_all(in), plain);
  EXPECT_TRUE(in.at_end());
}

TEST(InputStream, PeeksWithoutConsumingAndReadsInAnyPieces) {
  const Bytes plain = sample(2500000);
  const Bytes stored = zstd(plain);
  InputStream in(stored, "memory");
  std::mt19937 random(1);
  Bytes all;
  while (true) {
    const std::size_t wanted = random() % 700000;
    const auto ahead = in.peek(wanted);
    const Bytes seen(ahead.begin(), ahead.end());
    Bytes piece(wanted);
    piece.resize(in.read(piece));
    ASSERT_EQ(seen, piece);
    all.insert(all.end(), piece.begin(), piece.end());
    ASSERT_EQ(in.offset(), all.size());
    if (piece.size() < wanted) break;
  }
  EXPECT_EQ(all, plain);
}

TEST(InputStream, NamesTheFieldThatIsNotThere) {
  const Bytes plain{1, 2, 3};
  InputStream in(plain, "short.bin");
  Bytes out(2);
  in.read_exact(out, "first");
  EXPECT_THAT([&] { in.read_exact(out, "record"); },
              ::testing::ThrowsMessage<FormatError>(
                  HasSubstr("short.bin:2: record: expected 2 bytes, found 1")));
}

class InputFile : public test::TemporaryFolder {};

TEST_F(InputFile, ReadsAFileByName) {
  store("a.gz.txt", "plain");
  EXPECT_EQ(read_whole_file(path("a.gz.txt"), 5), test::bytes_of("plain"));
}

TEST_F(InputFile, RefusesMoreThanAllowedAFolderAndNothing) {
  store("big", std::string(100, 'x'));
  EXPECT_THROW(read_whole_file(path("big"), 99), FormatError);
  EXPECT_THROW(read_whole_file(folder_.string(), 99), IoError);
  EXPECT_THROW(read_whole_file(path("none"), 99), IoError);
}

TEST_F(InputFile, NoticesThatACompressedFileBecameLongerWhileItWasRead) {
  const Bytes stored = zstd(sample(200000));
  store("capture.zst", std::string(stored.begin(), stored.end()));
  InputStream in(path("capture.zst"));
  ASSERT_FALSE(in.peek(1).empty());
  std::ofstream(path("capture.zst"), std::ios::binary | std::ios::app)
      << std::string(stored.begin(), stored.end());
  EXPECT_THAT([&] { read_all(in); }, ::testing::ThrowsMessage<IoError>(
                                         HasSubstr("capture.zst: changed while it was read")));
}

TEST_F(InputFile, NoticesThatASmallFileWasWrittenOver) {
  store("capture.csv", std::string(300000, 'x'));
  InputStream in(path("capture.csv"));
  ASSERT_FALSE(in.peek(1).empty());
  std::ofstream(path("capture.csv"), std::ios::binary | std::ios::in) << "other";
  std::filesystem::last_write_time(
      path("capture.csv"), std::filesystem::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_THROW(read_all(in), IoError);
}

TEST_F(InputFile, RecognisesCompressionInAPipeThatDripsByteByByte) {
  const Bytes plain = sample(100);
  const Bytes stored = xz(plain);
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::thread writer([&] {
    std::ofstream out(path("pipe"), std::ios::binary);
    for (const std::uint8_t byte : stored) out << static_cast<char>(byte) << std::flush;
  });
  EXPECT_EQ(read_whole_file(path("pipe"), 1000), plain);
  writer.join();
}

}  // namespace
}  // namespace citcat
