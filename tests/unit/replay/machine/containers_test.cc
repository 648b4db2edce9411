#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <set>

#include "formats/memory/number_set.h"
#include "formats/memory/short_queue.h"

namespace citcat {
namespace {

TEST(ShortQueue, IsADeque) {
  std::mt19937 random(1);
  ShortQueue<int> queue;
  std::deque<int> expected;
  for (int i = 0; i < 100000; ++i) {
    const bool fills = i / 1000 % 2 == 0;
    if (expected.empty() || random() % 8 < (fills ? 5u : 3u)) {
      queue.push_back(i);
      expected.push_back(i);
    } else if (random() % 4 == 0) {
      const auto at = static_cast<std::ptrdiff_t>(random() % expected.size());
      const auto next = queue.erase(queue.begin() + at);
      expected.erase(expected.begin() + at);
      ASSERT_EQ(next - queue.begin(), at);
    } else {
      const std::size_t count = random() % std::min<std::size_t>(expected.size() + 1, 4);
      queue.drop_front(count);
      expected.erase(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(count));
    }
    ASSERT_EQ(queue.size(), expected.size());
    ASSERT_EQ(queue.empty(), expected.empty());
    if (expected.empty()) continue;
    ASSERT_EQ(queue.front(), expected.front());
    ASSERT_EQ(queue.back(), expected.back());
    ASSERT_TRUE(i % 64 != 0 || std::equal(queue.begin(), queue.end(), expected.begin()));
  }
}

TEST(NumberSet, IsASet) {
  std::mt19937 random(1);
  NumberSet numbers;
  std::set<std::uint32_t> expected;
  for (int i = 0; i < 100000; ++i) {
    const auto number = static_cast<std::uint32_t>(random() % 1000 + (random() % 200 << 14));
    if (random() % 3 == 0) {
      numbers.erase(number);
      expected.erase(number);
    } else {
      numbers.insert(number);
      expected.insert(number);
    }
    const std::uint32_t asked = number ^ (1u << random() % 24);
    ASSERT_TRUE(numbers.contains(number) == (expected.count(number) != 0));
    ASSERT_TRUE(numbers.contains(asked) == (expected.count(asked) != 0));
  }
  const NumberSet copy = numbers;
  for (const std::uint32_t number : expected) ASSERT_TRUE(copy.contains(number));
}

}  // namespace
}  // namespace citcat
