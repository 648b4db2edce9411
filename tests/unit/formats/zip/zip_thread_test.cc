#include "formats/zip/zip_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "formats/io/error.h"

namespace citcat {
namespace {

TEST(ZipThread, MakesCallsInTheirOrder) {
  std::vector<int> made;
  ZipThread thread;
  for (int i = 0; i < 1000; ++i) thread.put([&made, i] { made.push_back(i); });
  thread.drain();
  ASSERT_EQ(made.size(), 1000U);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(made[static_cast<std::size_t>(i)], i);
}

TEST(ZipThread, TellsOfAFailureAndMakesNoCallAfterIt) {
  bool made = false;
  ZipThread thread;
  thread.put([] { throw IoError("no space"); });
  EXPECT_THROW(
      {
        thread.put([&made] { made = true; });
        thread.drain();
      },
      IoError);
  EXPECT_THROW(thread.drain(), IoError);
  EXPECT_FALSE(made);
}

TEST(ZipThread, DropsWhatWaitsWhenItIsDestroyed) {
  std::atomic<int> made = 0;
  {
    ZipThread thread;
    for (int i = 0; i < 10; ++i) {
      thread.put([&made] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        ++made;
      });
    }
  }
  EXPECT_LT(made, 10);
}

}  // namespace
}  // namespace citcat
