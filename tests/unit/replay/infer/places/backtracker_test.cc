// Which choices a search can come back to.

#include "replay/infer/places/backtracker.h"

#include <gtest/gtest.h>

#include "unit/replay/machine/watched_guest.h"

namespace citcat::test {
namespace {

class BacktrackerTest : public testing::Test {
 protected:
  BacktrackerTest() : imported_(guest().record(3)) {}
  static WatchedGuest guest() {
    WatchedGuest guest;
    guest.code({0x40, 0x43, 0x41});  // inc ax; inc bx; inc cx
    return guest;
  }
  /// Boundaries at these offsets.
  Candidates candidates(std::initializer_list<std::uint32_t> offsets) {
    Candidates c;
    c.window = run_.here();
    for (const std::uint32_t eip : offsets) c.groups.emplace_back().state.eip = eip;
    return c;
  }
  static std::vector<std::uint32_t> offsets(const std::vector<BoundaryGroup>& groups) {
    std::vector<std::uint32_t> found;
    for (const BoundaryGroup& g : groups) found.push_back(g.state.eip);
    return found;
  }

  ImportedRecording imported_;
  PlacerOptions options_;
  PlacementRun run_{imported_.recording, [this] { return imported_.read_evidence(); }, options_};
  LineDecider lines_{run_};
  Backtracker choices_{run_, lines_};
};

TEST_F(BacktrackerTest, KeepsWhatWasNotTakenOfTheLatestChoices) {
  constexpr std::size_t kMade = 10, kKept = 8;
  for (std::size_t event = 0; event < kMade; ++event) {
    choices_.add(event, candidates({5, 7, 9}));
  }
  for (std::size_t event = 0; event < kMade; ++event) {
    EXPECT_EQ(choices_.of(event) != nullptr, event >= kMade - kKept) << event;
  }
  const Choice latest = choices_.take_latest();
  EXPECT_EQ(latest.event, kMade - 1);
  EXPECT_EQ(latest.taken.state.eip, 5u);
  EXPECT_EQ(offsets(latest.left.groups), (std::vector<std::uint32_t>{7, 9}));
  EXPECT_EQ(choices_.of(kMade - 1), nullptr);
}

TEST_F(BacktrackerTest, ForgetsAChoiceOfWhichNothingIsLeft) {
  choices_.add(3, candidates({5, 7, 9}));
  choices_.narrow(4, {});  // another event's: nothing happens
  choices_.narrow(3, candidates({9}).groups);
  ASSERT_NE(choices_.of(3), nullptr);
  EXPECT_EQ(offsets(choices_.of(3)->left.groups), (std::vector<std::uint32_t>{9}));
  choices_.narrow(3, {});
  EXPECT_TRUE(choices_.empty());
}

TEST_F(BacktrackerTest, RevisesOnlySoOftenWithoutACache) {
  EXPECT_FALSE(choices_.revise()) << "there is nothing to revise";
  choices_.add(0, candidates({5, 7}));
  unsigned revisions = 0;
  while (revisions < 1000 && choices_.revise()) ++revisions;
  EXPECT_EQ(revisions, 64u);
}

TEST(ReturnAddress, IsComparedAsFarAsALineShowsIt) {
  BoundaryGroup group;
  group.state.eip = 0x12345678;
  FrameWatch::Found found;
  EXPECT_TRUE(returns_there(group, found)) << "nothing is shown of it";
  found.eip_mask = 0xffff;
  found.eip = 0x5678;
  EXPECT_TRUE(returns_there(group, found));
  found.eip = 0x5679;
  EXPECT_FALSE(returns_there(group, found));
}

TEST(ReturnAddress, HasSixtyFourBitsInLongMode) {
  BoundaryGroup group;
  group.state.eip = 0x12345678;
  group.state.long_mode.emplace().rip_high = 0xffffffff;
  FrameWatch::Found found;
  found.eip_mask = ~std::uint64_t{0};
  found.eip = 0xffffffff12345678;
  EXPECT_TRUE(returns_there(group, found));
  found.eip = 0x12345678;
  EXPECT_FALSE(returns_there(group, found));
}

}  // namespace
}  // namespace citcat::test
