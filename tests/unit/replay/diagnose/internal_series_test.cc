// What the values around one that crosses no bus say of it.

#include "replay/diagnose/internal_series.h"

#include <gtest/gtest.h>

namespace citcat::test {
namespace {

/// A counter of three per instruction, read at these instructions.
std::vector<InternalRead> counter(std::initializer_list<std::uint64_t> instructions) {
  std::vector<InternalRead> reads;
  for (const std::uint64_t at : instructions) {
    InternalRead& read = reads.emplace_back();
    read.position_known = true;
    read.position.instruction = at;
    const std::uint64_t value = 0xfffffff0 + 3 * at;
    read.eax = static_cast<std::uint32_t>(value);
    read.edx = static_cast<std::uint32_t>(value >> 32);
  }
  return reads;
}

TEST(InternalSeries, ACounterIsExpectedToGoOnAtItsRate) {
  const auto reads = counter({0, 10, 14, 20, 50, 51});
  const InternalSeries series{InternalReads(reads)};
  for (std::size_t n = 0; n < reads.size(); ++n) {
    EXPECT_EQ(series.expectation(n).deviation(reads[n].value()), 0u) << n;
    EXPECT_TRUE(series.expectation(n).allows(reads[n].value()));
  }
  EXPECT_TRUE(series.doubtful(reads.size()).empty());
}

TEST(InternalSeries, ACounterThatRanBackwardsIsDoubtful) {
  auto reads = counter({0, 10, 14, 20, 50, 51});
  reads[2].eax ^= 0x4000;
  const InternalSeries series{InternalReads(reads)};
  EXPECT_FALSE(series.expectation(2).allows(reads[2].value()));
  EXPECT_EQ(series.doubtful(reads.size()), std::vector<std::size_t>{2});
  EXPECT_TRUE(series.doubtful(2).empty()) << "only those before";
}

TEST(InternalSeries, AValueThatOneBitBringsBackToTheRateIsDoubtful) {
  auto reads = counter({0, 100, 200, 300, 400, 500});
  reads[3].eax ^= 0x20;
  const InternalSeries series{InternalReads(reads)};
  EXPECT_TRUE(series.expectation(3).allows(reads[3].value()));
  EXPECT_EQ(series.doubtful(reads.size()), std::vector<std::size_t>{3});
}

TEST(InternalSeries, AHaltBetweenTwoValuesIsNoDoubt) {
  auto reads = counter({0, 100, 200, 300, 400, 500});
  for (std::size_t n = 3; n < reads.size(); ++n) reads[n].edx += 1;
  EXPECT_TRUE(InternalSeries(InternalReads(reads)).doubtful(reads.size()).empty());
}

TEST(InternalSeries, RegistersThatDoNotCountExpectNothing) {
  auto reads = counter({0, 10, 20, 30});
  for (InternalRead& read : reads) {
    read.op = InternalRead::Op::rdmsr;
    read.ecx = 0x174;
    read.eax = 0x60;
    read.edx = 0;
  }
  reads[1].eax = 0x61;
  const InternalSeries series{InternalReads(reads)};
  EXPECT_TRUE(series.expectation(1).allows(0));
  EXPECT_TRUE(series.doubtful(reads.size()).empty());
}

}  // namespace
}  // namespace citcat::test
