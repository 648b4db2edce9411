#include "tools/analyses/reuse_stack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <random>
#include <vector>

namespace citcat::tools {
namespace {

/// The same by moving lines about in a list.
class LineList {
 public:
  unsigned use(std::uint64_t line) {
    const auto at = std::find(lines_.rbegin(), lines_.rend(), line);
    if (at == lines_.rend()) {
      lines_.push_back(line);
      return ReuseStack::kNew;
    }
    const auto distance = static_cast<std::uint64_t>(at - lines_.rbegin());
    lines_.erase(std::next(at).base());
    lines_.push_back(line);
    return static_cast<unsigned>(std::bit_width(distance));
  }
  const std::vector<std::uint64_t>& lines() const { return lines_; }

 private:
  std::vector<std::uint64_t> lines_;  ///< that used last at the end
};

void expect_alike(std::uint32_t lines, std::uint32_t spread, std::uint32_t seed) {
  std::mt19937 random(seed);
  ReuseStack stack(4);
  LineList list;
  std::uint32_t at = 0;
  for (int i = 0; i < 4000; ++i) {
    // Near the last one, or anywhere.
    const auto chosen = static_cast<std::uint32_t>(random());
    at = chosen % 3 == 0 ? chosen / 3 % lines : (at + chosen / 3 % 4) % lines;
    const std::uint32_t line = at * spread;
    ASSERT_EQ(stack.use(line), list.use(line)) << "use " << i << " of " << lines << " lines";
  }
  EXPECT_EQ(stack.lines(), list.lines());
  EXPECT_EQ(stack.size(), list.lines().size());
}

TEST(ReuseStack, ALineIsAsFarBehindAsLinesWereUsedSince) {
  for (const std::uint32_t lines : {1u, 2u, 3u, 4u, 5u, 8u, 9u, 64u, 500u}) {
    expect_alike(lines, 1, lines);
    expect_alike(lines, 0x0fffffff / lines, lines + 1);
  }
}

TEST(ReuseStack, TheLastLineOfTheAddressSpaceIsALineAsAnyOther) {
  ReuseStack stack(4);
  EXPECT_EQ(stack.use(0x0fffffff), ReuseStack::kNew);
  EXPECT_EQ(stack.use(0), ReuseStack::kNew);
  EXPECT_EQ(stack.use(0x0fffffff), 1u);
}

TEST(ReuseStack, ALineTakenAwayLeavesAHoleThatTheNextOneFills) {
  ReuseStack stack(4);
  for (const std::uint32_t line : {1u, 2u, 3u, 4u}) stack.use(line);
  stack.take_away(3);
  EXPECT_EQ(stack.use(2), 2u) << "the hole is a place as any other";
  // It is now where 2 was, behind 4.
  EXPECT_EQ(stack.use(5), ReuseStack::kNew);
  EXPECT_EQ(stack.size(), 4u) << "5 took its place";
  EXPECT_EQ(stack.use(1), 2u);
  EXPECT_EQ(stack.use(3), ReuseStack::kNew) << "it was taken away";
}

}  // namespace
}  // namespace citcat::tools
