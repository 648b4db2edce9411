// Where an interrupt may be, by the lines that its handler pushes out.

#include "replay/infer/places/interleaving.h"

#include <gtest/gtest.h>

namespace citcat::test {
namespace {

using Kind = CacheTraffic::Kind;

/// Four ways of 2 KiB each.
constexpr std::uint32_t kWayBytes = 2048, kSharedLine = 0x1000;

CacheOp read(std::uint32_t a) { return {CacheOp::Kind::read, PhysAddr{a}, 4}; }
const CacheOp kBoundary{};

CacheFollower::Line fill(std::uint32_t a) {
  CacheFollower::Line line;
  line.traffic = {Kind::data_fill, PhysAddr{a}};
  return line;
}

class InterleavingTest : public testing::Test {
 protected:
  InterleavingTest() : model_(*find_cache("i486"), CachedMemory(1u << 20)) {
    // The set is full; the line that the code uses is the oldest of it.
    for (std::uint32_t way = 0; way < 4; ++way)
      model_.read(PhysAddr{kSharedLine + way * kWayBytes}, 4);
    model_.traffic().clear();
    // Two instructions, the first of which uses the line.
    run_.before = {read(kSharedLine), kBoundary, read(0x40), kBoundary};
    model_.read(PhysAddr{0x40}, 4);
    model_.traffic().clear();
    // The handler fills another line of the set, then the code goes on.
    run_.after = {read(kSharedLine + 4 * kWayBytes), kBoundary};
    run_.returned = run_.after.size();
    run_.after.insert(run_.after.end(), run_.before.begin(), run_.before.end());
    run_.after.insert(run_.after.end(), {read(kSharedLine + kWayBytes), kBoundary});
  }
  std::vector<bool> fit(const std::vector<CacheFollower::Line>& lines) const {
    const std::vector<InterruptPlace> places{{0, false}, {1, false}, {2, false}};
    return places_that_fit(model_, run_, lines, places);
  }

  CacheModel model_;
  Interleaved run_;
};

TEST_F(InterleavingTest, ALineUsedAfterTheHandlerIsFilledAgain) {
  // Before its use the line is the oldest: the handler pushes it out.
  EXPECT_EQ(
      fit({fill(kSharedLine + 4 * kWayBytes), fill(kSharedLine), fill(kSharedLine + kWayBytes)}),
      (std::vector<bool>{true, false, false}));
}

TEST_F(InterleavingTest, ALineUsedBeforeTheHandlerStays) {
  EXPECT_EQ(fit({fill(kSharedLine + 4 * kWayBytes), fill(kSharedLine + kWayBytes)}),
            (std::vector<bool>{false, true, true}));
}

TEST_F(InterleavingTest, PlacesThatNoLineTellsApartAllFit) {
  EXPECT_EQ(fit({fill(kSharedLine + 4 * kWayBytes)}), (std::vector<bool>{true, true, true}));
}

TEST_F(InterleavingTest, AHandlerThatMovesOtherLinesFitsNowhere) {
  EXPECT_EQ(fit({fill(kSharedLine + 5 * kWayBytes)}), (std::vector<bool>{false, false, false}));
}

}  // namespace
}  // namespace citcat::test
