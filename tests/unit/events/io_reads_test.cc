#include "events/io_reads.h"

#include <gtest/gtest.h>

#include <random>

namespace citcat {
namespace {

/// Of every sort that there is: counts that go back, values wider than their size, any distance.
std::vector<IoRead> some_reads(std::size_t count) {
  std::mt19937_64 random(20261125);
  std::vector<IoRead> reads;
  IoRead read;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t r = random();
    read.size = static_cast<std::uint8_t>(1 + r % 4);
    read.value = static_cast<std::uint32_t>(random() >> (r >> 8 & 63));
    if ((r >> 16 & 3) == 0) read.port = static_cast<std::uint16_t>(random());
    read.position_known = (r >> 18 & 7) != 0;
    read.position.instruction += (r >> 21 & 7) == 0 ? random() >> (r >> 24 & 63) : r >> 30 & 15;
    read.position.iteration = (r >> 34 & 3) == 0 ? static_cast<std::uint32_t>(random()) : 0;
    read.transaction += (r >> 36 & 3) == 0 ? random() : 1;
    reads.push_back(read);
  }
  return reads;
}

IoReads packed(const std::vector<IoRead>& reads) {
  IoReads all;
  all.append(reads);
  return all;
}

TEST(IoReads, GivesWhatWasPutInOneAfterTheOtherAndEachAlone) {
  const std::vector<IoRead> reads = some_reads(1000);
  const IoReads all = packed(reads);
  ASSERT_EQ(all.size(), reads.size());
  std::size_t n = 0;
  for (const IoRead& read : all) EXPECT_EQ(read, reads[n++]);
  EXPECT_EQ(n, reads.size());
  for (std::size_t i = 0; i < reads.size(); ++i) {
    EXPECT_EQ(all[i], reads[i]);
    EXPECT_EQ(all.from(i).index(), i);
  }
  EXPECT_EQ(all.front(), reads.front());
  EXPECT_EQ(all.back(), reads.back());
  EXPECT_TRUE(all.from(reads.size()) == all.end());
}

TEST(IoReads, AreCutAtEitherEnd) {
  const std::vector<IoRead> reads = some_reads(100);
  for (const std::size_t count : {0, 1, 15, 16, 17, 99, 100, 200}) {
    const auto at = static_cast<std::ptrdiff_t>(std::min<std::size_t>(count, reads.size()));
    IoReads kept = packed(reads);
    kept.truncate(count);
    EXPECT_EQ(kept, packed({reads.begin(), reads.begin() + at}));
    IoReads rest = packed(reads);
    EXPECT_EQ(rest.take_first(count), std::vector<IoRead>(reads.begin(), reads.begin() + at));
    EXPECT_EQ(rest, packed({reads.begin() + at, reads.end()}));
    EXPECT_TRUE(rest.empty() || rest.back() == reads.back());
  }
}

TEST(IoReads, ValuesChangeInPlace) {
  std::vector<IoRead> reads = some_reads(50);
  IoReads all = packed(reads);
  for (const std::size_t i : {0, 20, 49}) {
    reads[i].value = 0x12345678;
    all.set_value(i, 0x12345678);
  }
  EXPECT_EQ(all, packed(reads));
  EXPECT_EQ(all.back(), reads.back());
}

}  // namespace
}  // namespace citcat
