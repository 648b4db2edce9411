#include "events/on_chip_marker.h"

#include <gtest/gtest.h>

#include "formats/io/error.h"

namespace citcat::test {
namespace {

BusTransaction access(BusOp op, std::uint32_t address, std::vector<std::uint8_t> bytes) {
  BusTransaction t;
  t.op = op;
  t.address.value = address;
  t.size = static_cast<std::uint8_t>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), t.data.begin());
  return t;
}

TEST(OnChipMarker, IsTheSameTextAgain) {
  for (const char* text : {"30=io-write:20:60", "ef=mem-write:fee000b0:00000000", "08=mem-read:20",
                           "02=io-write:80", "20=mem-write:ffff:0123"}) {
    EXPECT_EQ(on_chip_marker_text(parse_on_chip_marker(text)), text);
  }
}

TEST(OnChipMarker, TakesNumbersWithAndWithoutPrefix) {
  const OnChipMarker marker = parse_on_chip_marker("0x30=io-write:0x20:0x60");
  EXPECT_EQ(on_chip_marker_text(marker), "30=io-write:20:60");
}

TEST(OnChipMarker, RefusesWhatIsNoMarker) {
  for (const char* text :
       {"", "30", "30=", "30=io-write", "30=io-write:", "=io-write:20", "100=io-write:20",
        "30=io-read:20", "30=io-write:10000", "30=io-write:20:", "30=io-write:20:60:1",
        "30=mem-write:100000000", "30=mem-write:0:123456", "30=mem-write:0:1234567890",
        "30=io-write:2g", "30=mem-read:-1", "g=mem-read:0"}) {
    EXPECT_THROW(parse_on_chip_marker(text), UsageError) << text;
  }
}

TEST(OnChipMarker, IsShownByTheAccessItNames) {
  const OnChipMarker eoi = parse_on_chip_marker("30=io-write:20:60");
  EXPECT_TRUE(eoi.shown_by(access(BusOp::io_write, 0x20, {0x60})));
  EXPECT_FALSE(eoi.shown_by(access(BusOp::io_write, 0x20, {0x20})));
  EXPECT_FALSE(eoi.shown_by(access(BusOp::io_write, 0x21, {0x60})));
  EXPECT_FALSE(eoi.shown_by(access(BusOp::io_read, 0x20, {0x60})));
  EXPECT_FALSE(eoi.shown_by(access(BusOp::data_write, 0x20, {0x60})));
}

TEST(OnChipMarker, IsShownWithAnyValueWhereNoneIsNamed) {
  const OnChipMarker post = parse_on_chip_marker("30=io-write:80");
  EXPECT_TRUE(post.shown_by(access(BusOp::io_write, 0x80, {0x01})));
  EXPECT_TRUE(post.shown_by(access(BusOp::io_write, 0x80, {0x02, 0x03})));
}

TEST(OnChipMarker, IsFoundWithinALargerTransfer) {
  const OnChipMarker store = parse_on_chip_marker("30=mem-write:1002:abcd");
  EXPECT_TRUE(store.shown_by(access(BusOp::data_write, 0x1000, {0, 0, 0xcd, 0xab})));
  EXPECT_FALSE(store.shown_by(access(BusOp::data_write, 0x1000, {0, 0, 0xcd})));
  EXPECT_FALSE(store.shown_by(access(BusOp::data_write, 0x1000, {0, 0, 0xab, 0xcd})));
  EXPECT_FALSE(store.shown_by(access(BusOp::data_write, 0x1003, {0xcd, 0xab})));
  BusTransaction line = access(BusOp::data_write, 0x1000, {0, 0, 0xcd, 0xab});
  line.flags = kWriteBack;
  EXPECT_FALSE(store.shown_by(line)) << "a cache gave it up, whoever stored it";
}

}  // namespace
}  // namespace citcat::test
