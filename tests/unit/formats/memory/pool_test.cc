#include "formats/memory/pool.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace citcat {
namespace {

TEST(Pool, LendsWhatCameBackAsItWas) {
  Pool<std::vector<int>> pool(1, 1);
  std::shared_ptr<std::vector<int>> lent = pool.take();
  lent->push_back(5);
  lent.reset();
  EXPECT_EQ(*pool.take(), std::vector{5});
}

TEST(Pool, HasNoMoreThanWereAllowed) {
  Pool<int> pool(2, 1);
  const std::shared_ptr<int> first = pool.take();
  std::shared_ptr<int> second = pool.take();
  int* const address = second.get();
  std::thread back([&second] { second.reset(); });
  EXPECT_EQ(pool.take().get(), address) << "made a third one";
  back.join();
}

TEST(Pool, LendsNothingOnceItIsClosed) {
  Pool<int> pool(1, 1);
  const std::shared_ptr<int> lent = pool.take();
  std::thread closes([&pool] { pool.close(); });
  EXPECT_EQ(pool.take(), nullptr);
  closes.join();
  EXPECT_EQ(pool.take(), nullptr);
}

TEST(Pool, MayGoBeforeWhatItLent) {
  std::shared_ptr<int> lent;
  {
    Pool<int> pool(1, 1);
    lent = pool.take();
  }
  *lent = 3;
  EXPECT_EQ(*lent, 3);
}

}  // namespace
}  // namespace citcat
