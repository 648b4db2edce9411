// How far evidence has been read, and what it tells of the replay's place.

#include "replay/captured/evidence_cursor.h"

#include <gtest/gtest.h>

#include <vector>

#include "unit/replay/verify/bus_transactions.h"

namespace citcat::test {
namespace {

TEST(EvidenceCursor, KnowsTheNextTransactionUntilItIsTaken) {
  ListedEvidence list(
      {counted(BusOp::data_read, 0x10, 4, 3), counted(BusOp::data_read, 0x20, 4, 4)});
  EvidenceCursor cursor(list, false);
  EXPECT_FALSE(cursor.is_known());
  ASSERT_TRUE(cursor.read());
  ASSERT_TRUE(cursor.read()) << "which reads no other";
  EXPECT_EQ(cursor.next().address, PhysAddr{0x10});
  EXPECT_EQ(cursor.last_index(), kNoTransaction);
  EXPECT_EQ(cursor.take().address, PhysAddr{0x10});
  EXPECT_FALSE(cursor.is_known());
  EXPECT_EQ(cursor.last_index(), 0u);
  EXPECT_EQ(cursor.parts(), 1u);
  ASSERT_TRUE(cursor.read());
  cursor.take();
  EXPECT_FALSE(cursor.at_end());
  EXPECT_FALSE(cursor.read());
  EXPECT_TRUE(cursor.at_end());
}

TEST(EvidenceCursor, ReachesAsFarAsTheMemoryTrafficTaken) {
  ListedEvidence list({counted(BusOp::io_read, 0x60, 1, 9), counted(BusOp::data_read, 0x10, 4, 3)});
  EvidenceCursor cursor(list, false);
  cursor.read();
  cursor.take();
  EXPECT_FALSE(cursor.counted()) << "ports tell nothing of memory traffic";
  cursor.read();
  cursor.take();
  EXPECT_TRUE(cursor.counted());
  EXPECT_TRUE(cursor.is_beyond({2, 7}));
  EXPECT_FALSE(cursor.is_beyond({3, 0}));
  EXPECT_FALSE(cursor.ends_within({3, 0})) << "more may come";
  cursor.read();
  EXPECT_TRUE(cursor.ends_within({3, 0}));
  EXPECT_FALSE(cursor.ends_within({2, 0}));
}

/// Memory traffic of instruction 0, then so many port accesses, one with each further instruction.
std::vector<BusTransaction> polling(std::uint64_t accesses) {
  std::vector<BusTransaction> all{counted(BusOp::code_read, 0x10, 4, 0)};
  for (std::uint64_t i = 1; i <= accesses; ++i) all.push_back(counted(BusOp::io_read, 0x60, 1, i));
  return all;
}

TEST(EvidenceCursor, ReachesAsFarAsManyCountedPortAccessesSay) {
  constexpr std::uint64_t kMany = EvidenceCursor::kManyPorts;
  ListedEvidence list(polling(4 * kMany));
  EvidenceCursor cursor(list, false);
  std::uint64_t taken = 0;
  // Whoever asks for each instruction reads no more than a few times as many ahead.
  for (std::uint64_t at = 0; at < kMany; ++at) {
    for (; !cursor.is_beyond({at, 0}); ++taken) {
      ASSERT_TRUE(cursor.read());
      cursor.take();
    }
    ASSERT_LE(taken, at + 2 * kMany + 2);
    ASSERT_GE(taken, at + kMany) << "fewer say nothing";
  }
}

TEST(EvidenceCursor, PortAccessesThatAreNotCountedSayNothing) {
  constexpr std::uint64_t kMany = EvidenceCursor::kManyPorts;
  std::vector<BusTransaction> all = polling(4 * kMany);
  for (std::size_t i = kMany; i < all.size(); i += kMany) all[i] = uncounted(all[i]);
  ListedEvidence list(all);
  EvidenceCursor cursor(list, false);
  while (cursor.read()) cursor.take();
  EXPECT_FALSE(cursor.is_beyond({0, 0}));
}

TEST(EvidenceCursor, OneTransactionWithoutAPositionLeavesNoneCounted) {
  ListedEvidence list(
      {uncounted(counted(BusOp::data_read, 0x10, 4, 0)), counted(BusOp::data_read, 0x10, 4, 5)});
  EvidenceCursor cursor(list, false);
  while (cursor.read()) cursor.take();
  EXPECT_FALSE(cursor.counted());
  EXPECT_FALSE(cursor.is_beyond({0, 0}));
}

TEST(EvidenceCursor, NoticesCountsThatGoBack) {
  ListedEvidence list({counted(BusOp::data_read, 0x10, 4, 5), counted(BusOp::io_read, 0x60, 1, 1),
                       counted(BusOp::data_read, 0x10, 4, 4)});
  EvidenceCursor cursor(list, false);
  cursor.read();
  cursor.take();
  cursor.read();
  EXPECT_FALSE(cursor.goes_back());
  cursor.take();
  cursor.read();
  EXPECT_TRUE(cursor.goes_back());
}

TEST(EvidenceCursor, LinesMayComeAsOne) {
  ListedEvidence list({counted(BusOp::data_read, 0x10, 32, 5)});
  EvidenceCursor cursor(list, true);
  cursor.read();
  EXPECT_EQ(cursor.parts(), 2u);
}

}  // namespace
}  // namespace citcat::test
