#include "formats/io/byte_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "formats/io/byte_writer.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

ByteReader reader(const std::vector<std::uint8_t>& bytes) { return {bytes, "file.bin", 100}; }

TEST(ByteReader, NamesTheFieldAndOffsetWhereTheFileEnds) {
  const std::vector<std::uint8_t> bytes{1, 2, 3};
  ByteReader in = reader(bytes);
  in.u8("first");
  EXPECT_THAT([&] { in.u32("record length"); },
              ThrowsMessage<FormatError>(
                  HasSubstr("file.bin:101: record length: expected 4 bytes, found 2")));
}

TEST(ByteReader, ReadsLittleEndianNumbers) {
  const std::vector<std::uint8_t> bytes{0x12, 0x34, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8};
  ByteReader in = reader(bytes);
  EXPECT_EQ(in.u16("little"), 0x3412);
  EXPECT_EQ(in.u32("little"), 0x04030201U);
  EXPECT_EQ(in.u64("little"), 0x0807060504030201U);
  EXPECT_TRUE(in.at_end());
}

TEST(ByteReader, ReadsVarintsOfEveryLength) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t value = random() >> random() % 64;
    const auto signed_value = static_cast<std::int64_t>(random()) >> random() % 64;
    ByteWriter out;
    out.varint(value);
    out.signed_varint(signed_value);
    ByteReader in(out.view(), "varints");
    EXPECT_EQ(in.varint("plain"), value);
    EXPECT_EQ(in.signed_varint("signed"), signed_value);
    in.expect_end("the pair");
  }
}

TEST(ByteReader, KeepsTheExtremesOfSignedNumbers) {
  for (const std::int64_t value : {std::numeric_limits<std::int64_t>::min(),
                                   std::numeric_limits<std::int64_t>::max(), std::int64_t{-1}}) {
    ByteWriter out;
    out.signed_varint(value);
    EXPECT_EQ(ByteReader(out.view(), "").signed_varint(""), value);
  }
}

TEST(ByteReader, RefusesVarintsBeyond64Bits) {
  std::vector<std::uint8_t> bytes(9, 0xff);
  bytes.push_back(1);
  EXPECT_EQ(reader(bytes).varint("largest"), ~std::uint64_t{0});
  bytes.back() = 2;
  EXPECT_THROW(reader(bytes).varint("too large"), FormatError);
  bytes.back() = 0x81;
  EXPECT_THROW(reader(bytes).varint("too long"), FormatError);
}

TEST(ByteReader, RefusesCountsAndTextsBeyondTheirMaximum) {
  const std::vector<std::uint8_t> bytes{3, 'a', 'b', 'c'};
  EXPECT_EQ(reader(bytes).string("name", 3), "abc");
  EXPECT_THAT([&] { reader(bytes).count("pages", 2); },
              ThrowsMessage<FormatError>(HasSubstr("100: pages: expected at most 2, found 3")));
  const std::vector<std::uint8_t> cut{9, 'a'};
  EXPECT_THROW(reader(cut).string("name", 100), FormatError);
}

TEST(ByteReader, DoesNotTakeALengthThatWrapsAround) {
  const std::vector<std::uint8_t> bytes{1, 2, 3};
  ByteReader in = reader(bytes);
  in.u8("first");
  EXPECT_THROW(in.bytes(~std::uint64_t{0}, "payload"), FormatError);
  EXPECT_EQ(in.remaining(), 2U);
}

TEST(ByteReader, RefusesWhatIsLeftOver) {
  const std::vector<std::uint8_t> bytes{1, 2};
  ByteReader in = reader(bytes);
  in.u8("first");
  EXPECT_THAT([&] { in.expect_end("the header"); },
              ThrowsMessage<FormatError>(
                  HasSubstr("101: expected the end of the header, found 1 more bytes")));
}

}  // namespace
}  // namespace citcat
