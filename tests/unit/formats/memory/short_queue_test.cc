#include "formats/memory/short_queue.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

namespace citcat {
namespace {

template <class Queue>
std::vector<unsigned> contents(const Queue& queue) {
  return {queue.begin(), queue.end()};
}

/// Does the same with both, `steps` times.
void compare_with_a_deque(unsigned seed, unsigned steps, unsigned percent_of_pushes) {
  std::mt19937 random(seed);
  ShortQueue<unsigned> queue;
  std::deque<unsigned> expected;
  for (unsigned step = 0; step < steps; ++step) {
    const auto choice = static_cast<unsigned>(random() % 100);
    if (choice < percent_of_pushes || expected.empty()) {
      queue.push_back(step);
      expected.push_back(step);
    } else if (choice < 90) {
      queue.pop_front();
      expected.pop_front();
    } else if (choice < 95) {
      const std::size_t at = random() % expected.size();
      queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(at));
      expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (choice < 99) {
      const std::size_t count = random() % (expected.size() + 1);
      queue.drop_back(count);
      expected.resize(expected.size() - count);
    } else {
      queue.clear();
      expected.clear();
    }
    ASSERT_EQ(queue.size(), expected.size());
    ASSERT_EQ(queue.empty(), expected.empty());
    if (expected.empty()) continue;
    ASSERT_EQ(queue.front(), expected.front());
    ASSERT_EQ(queue.back(), expected.back());
    ASSERT_EQ(queue[expected.size() / 2], expected[expected.size() / 2]);
    ASSERT_EQ(contents(queue), contents(expected));
  }
}

TEST(ShortQueue, HoldsWhatADequeHoldsWhileItIsShort) { compare_with_a_deque(1, 20000, 45); }

TEST(ShortQueue, HoldsWhatADequeHoldsWhenItGrowsLong) { compare_with_a_deque(2, 4000, 80); }

}  // namespace
}  // namespace citcat
