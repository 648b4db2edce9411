#include "formats/io/shared_ring.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace citcat {
namespace {

constexpr std::size_t kRing = 3 * 4096;

/// What the writer writes: pieces of any length, up to twice the ring, of numbers in order.
template <class F>
void each_piece(F&& visit) {
  std::mt19937 random(11);
  std::uint8_t next = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<std::uint8_t> piece(random() % (i % 8 == 0 ? 2 * kRing : 300));
    std::generate(piece.begin(), piece.end(), [&] { return next += 7; });
    visit(piece);
  }
}

std::vector<std::uint8_t> all_pieces() {
  std::vector<std::uint8_t> all;
  each_piece([&](const auto& piece) { all.insert(all.end(), piece.begin(), piece.end()); });
  return all;
}

TEST(SharedRing, GivesTheReaderWhatAnotherProcessWrites) {
  SharedRing ring(kRing);
  const pid_t writer = ::fork();
  ASSERT_GE(writer, 0);
  if (writer == 0) {
    bool good = true;
    each_piece([&](const auto& piece) { good = good && ring.write(piece); });
    std::_Exit(good ? 0 : 1);
  }
  const std::vector<std::uint8_t> expected = all_pieces();
  std::vector<std::uint8_t> found;
  std::mt19937 random(5);
  while (found.size() < expected.size()) {
    const auto readable = ring.readable();
    ASSERT_LE(readable.size(), ring.size());
    const auto some = readable.first(std::min<std::size_t>(readable.size(), random() % 5000));
    found.insert(found.end(), some.begin(), some.end());
    ring.consume(some.size());
    if (readable.empty()) SharedRing::wait();
  }
  EXPECT_TRUE(found == expected);
  int status = 0;
  ASSERT_EQ(::waitpid(writer, &status, 0), writer);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(ring.readable().empty());
}

TEST(SharedRing, TellsTheWriterThatNobodyReadsAnyMore) {
  std::array<int, 2> answer{};
  ASSERT_EQ(::pipe(answer.data()), 0);
  const pid_t reader = ::fork();
  ASSERT_GE(reader, 0);
  if (reader == 0) {
    SharedRing ring(kRing);
    if (::fork() == 0) {
      const std::vector<std::uint8_t> much(2 * kRing);
      const char told = ring.write(much) ? 'y' : 'n';
      std::_Exit(::write(answer[1], &told, 1) == 1 ? 0 : 1);
    }
    std::_Exit(0);
  }
  ASSERT_EQ(::waitpid(reader, nullptr, 0), reader);
  char told = '?';
  ASSERT_EQ(::read(answer[0], &told, 1), 1);
  EXPECT_EQ(told, 'n');
}

TEST(SharedRing, GoesOnAtItsBeginningWhereAllWasRead) {
  SharedRing ring(kRing);
  const std::vector<std::uint8_t> some = {1, 2, 3};
  ASSERT_TRUE(ring.write(some));
  EXPECT_EQ(ring.skippable(1), 0U) << "something is to be read";
  const std::uint8_t* const beginning = ring.readable().data();
  ring.consume(3);
  EXPECT_EQ(ring.skippable(4), 0U) << "so near";
  ASSERT_EQ(ring.skippable(3), ring.size() - 3);
  ring.skip(ring.size() - 3);
  EXPECT_EQ(ring.readable().size(), ring.size() - 3);
  ring.consume(ring.size() - 3);
  ASSERT_TRUE(ring.write(some));
  EXPECT_EQ(ring.readable().data(), beginning);
  EXPECT_TRUE(std::ranges::equal(ring.readable(), some));
}

TEST(SharedRing, IsOfWholePages) {
  EXPECT_EQ(SharedRing(1).size() % 4096, 0U);
  EXPECT_GE(SharedRing(5000).size(), 5000U);
}

}  // namespace
}  // namespace citcat
