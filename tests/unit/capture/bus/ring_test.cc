#include "capture/bus/ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace citcat {
namespace {

TEST(Ring, HoldsWhatADequeHolds) {
  std::mt19937 random(1);
  Ring<unsigned> ring;
  std::deque<unsigned> deque;
  for (unsigned step = 0; step < 20000; ++step) {
    const unsigned what = random() % 16;
    if (what < 9) {
      ring.push_back() = step;
      deque.push_back(step);
    } else if (what < 14 && !deque.empty()) {
      EXPECT_EQ(ring.front(), deque.front());
      ring.pop_front();
      deque.pop_front();
    } else if (what == 14 && !deque.empty()) {
      const std::size_t at = random() % deque.size();
      ring.erase(at);
      deque.erase(deque.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (what == 15 && random() % 64 == 0) {
      const std::size_t left = deque.size() / 3;
      ring.truncate(left);
      deque.resize(left);
    }
    ASSERT_EQ(ring.size(), deque.size());
    ASSERT_EQ(ring.empty(), deque.empty());
    for (std::size_t i = 0; i < deque.size(); i += 1 + random() % 8) ASSERT_EQ(ring[i], deque[i]);
  }
}

TEST(Ring, IsEmptyWhenCleared) {
  Ring<unsigned> ring;
  for (unsigned i = 0; i < 100; ++i) ring.push_back() = i;
  ring.clear();
  EXPECT_TRUE(ring.empty());
  ring.push_back() = 7;
  EXPECT_EQ(ring.front(), 7U);
}

}  // namespace
}  // namespace citcat
