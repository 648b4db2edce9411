// Every store of a program to what is watched ends every move over it: forwards and backwards, from
// everywhere, alone and with other stops. The stores are written down here, by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "debugger/target/debug_target.h"
#include "events/position_text.h"
#include "unit/debugger/watched_program.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

using P = WatchedProgram;
using Why = MoveEnd::Why;

/// What one step stores, for those that store: the position before it, and whether its handler has
/// been entered there.
struct StoringStep {
  Position before;
  bool in_handler;
  std::uint32_t address, size;
};
constexpr StoringStep kStoringSteps[] = {
    {{0, 0}, false, P::kCount, 4},        // mov dword [600h], 0
    {{2, 0}, false, P::kCount, 4},        // inc dword [600h], five times
    {{5, 0}, false, P::kCount, 4},        //
    {{8, 0}, false, P::kCount, 4},        //
    {{11, 0}, false, P::kCount, 4},       //
    {{14, 0}, false, P::kCount, 4},       //
    {{18, 0}, false, P::kWide, 16},       // movups [700h], xmm0
    {{22, 0}, false, P::kFilled, 4},      // rep stosd
    {{22, 1}, false, P::kFilled + 4, 4},  //
    {{22, 2}, false, P::kFilled + 8, 4},  //
    {{22, 3}, false, P::kFilled + 12, 4},
    {{23, 0}, false, P::kStack - 12, 12},  // ud2: EFLAGS, CS, EIP
    {{23, 0}, true, P::kCount, 4},         // inc dword [600h]
    {{24, 0}, true, P::kStack - 12, 4},    // add dword [esp], 2
    {{26, 0}, false, P::kStack - 4, 4},    // call
    {{27, 0}, false, P::kStack - 8, 4},    // push eax
};

enum class Move { step, range, go_on, step_back, go_back };
constexpr Move kMoves[] = {Move::step, Move::range, Move::go_on, Move::step_back, Move::go_back};
constexpr const char* kMoveNames[] = {"step", "range", "go on", "step back", "go back"};
bool is_back(Move move) { return move == Move::step_back || move == Move::go_back; }

using Watches = std::vector<std::uint32_t>;  ///< addresses of dwords

class WatchMatrix : public TemporaryFolder {
 protected:
  /// All places of the program, as far as one goes by steps.
  struct Place {
    Moment moment;
    std::uint64_t next = 0;  ///< instruction
    std::size_t mark = 0;
  };
  void SetUp() override {
    P().store(path("r.citcat"));
    file_.emplace(RecordingFile::open(path("r.citcat")));
    target_.emplace(*file_, ComparisonPolicy{}, false);
    ReplayTimeline& timeline = target_->timeline();
    do {
      places_.push_back({timeline.moment(), target_->next_instruction().value, timeline.mark()});
    } while (timeline.step());
    ASSERT_EQ(places_.size(), P::kInstructions + 5);  // three more iterations, UD2, and the end
  }
  /// What the step from this place stores among what is watched.
  Watches stored_by(std::size_t place, const Watches& watches) const {
    Watches stored;
    const Place& p = places_[place];
    for (const StoringStep& s : kStoringSteps) {
      if (s.before != p.moment.position || s.in_handler != (p.next >= P::kHandler)) continue;
      std::copy_if(watches.begin(), watches.end(), std::back_inserter(stored),
                   [&](auto w) { return w + 4 > s.address && w < s.address + s.size; });
    }
    return stored;
  }
  MoveEnd make(Move move) {
    switch (move) {
      case Move::step:
        return target_->step();
      case Move::range:
        return target_->step_in_range(LinearAddr{P::kBegin}, 0x20, {});
      case Move::go_on:
        return target_->go_on({});
      case Move::step_back:
        return target_->step_back();
      case Move::go_back:
        return target_->go_back({});
    }
    return {};
  }
  /// Where a move from this place is to end, and the steps over which it goes.
  std::size_t end_without_stores(Move move, std::size_t from) const {
    const std::size_t last = places_.size() - 1;
    switch (move) {
      case Move::step:
        return std::min(from + 1, last);
      case Move::go_on:
        return last;
      case Move::step_back:
        return from == 0 ? 0 : from - 1;
      case Move::go_back:
        return 0;
      case Move::range:
        break;
    }
    std::size_t to = std::min(from + 1, last);
    while (to != last && places_[to].next < P::kBegin + 0x20) ++to;
    return to;
  }
  std::size_t expected_end(Move move, std::size_t from, const Watches& watches) const {
    const std::size_t end = end_without_stores(move, from);
    if (is_back(move)) {
      for (std::size_t i = from; i-- != end;) {
        if (!stored_by(i, watches).empty()) return i;
      }
    } else {
      for (std::size_t i = from; i != end; ++i) {
        if (!stored_by(i, watches).empty()) return i + 1;
      }
    }
    return end;
  }
  void expect_right(Move move, std::size_t from, const Watches& watches) {
    ReplayTimeline& timeline = target_->timeline();
    timeline.return_to(places_[from].mark);
    SCOPED_TRACE(testing::Message() << kMoveNames[static_cast<int>(move)] << " from "
                                    << position_text(places_[from].moment.position) << " at "
                                    << std::hex << places_[from].next);
    const std::size_t to = expected_end(move, from, watches);
    const bool moves = to != from;
    const Watches met = moves ? stored_by(is_back(move) ? to : to - 1, watches) : Watches{};
    const MoveEnd end = make(move);
    ASSERT_EQ(timeline.moment(), places_[to].moment);
    ASSERT_EQ(target_->next_instruction().value, places_[to].next);
    ASSERT_EQ(end.why == Why::watchpoint, !met.empty());
    if (met.empty()) return;
    // The others that were met are told without another move.
    std::set<std::uint64_t> told = {end.watched.value};
    while (told.size() != met.size()) {
      const MoveEnd next = make(move);
      ASSERT_EQ(next.why, Why::watchpoint);
      ASSERT_EQ(timeline.moment(), places_[to].moment);
      ASSERT_TRUE(told.insert(next.watched.value).second) << next.watched.value;
    }
    EXPECT_EQ(told, std::set<std::uint64_t>(met.begin(), met.end()));
  }
  void expect_all_right(const Watches& watches) {
    for (const std::uint32_t w : watches) {
      target_->insert(StopKind::write_watchpoint, LinearAddr{w}, 4);
    }
    for (const Move move : kMoves) {
      for (std::size_t from = 0; from < places_.size(); ++from) {
        expect_right(move, from, watches);
        if (HasFatalFailure()) return;
      }
    }
    for (const std::uint32_t w : watches) {
      target_->remove(StopKind::write_watchpoint, LinearAddr{w}, 4);
    }
  }
  /// What may be looked for besides, and where nothing is.
  void look_for_more(bool code, bool reads) {
    if (code) target_->insert(StopKind::software_breakpoint, LinearAddr{0xfffff}, 1);
    if (reads) target_->insert(StopKind::read_watchpoint, LinearAddr{0x9ff0}, 4);
  }

  std::optional<RecordingFile> file_;
  std::optional<DebugTarget> target_;
  std::vector<Place> places_;
};

constexpr std::uint32_t kWatched[] = {P::kCount,      P::kWide + 4,  P::kFilled,   P::kFilled + 12,
                                      P::kStack - 12, P::kStack - 8, P::kStack - 4};

TEST_F(WatchMatrix, OneWatchpoint) {
  for (const std::uint32_t watched : kWatched) {
    SCOPED_TRACE(testing::Message() << "watched " << std::hex << watched);
    ASSERT_NO_FATAL_FAILURE(expect_all_right({watched}));
  }
}

TEST_F(WatchMatrix, OneWatchpointWithABreakpointBeside) {
  look_for_more(true, false);
  for (const std::uint32_t watched : kWatched) {
    SCOPED_TRACE(testing::Message() << "watched " << std::hex << watched);
    ASSERT_NO_FATAL_FAILURE(expect_all_right({watched}));
  }
}

TEST_F(WatchMatrix, OneWatchpointWithReadsWatchedBeside) {
  look_for_more(false, true);
  for (const std::uint32_t watched : kWatched) {
    SCOPED_TRACE(testing::Message() << "watched " << std::hex << watched);
    ASSERT_NO_FATAL_FAILURE(expect_all_right({watched}));
  }
}

TEST_F(WatchMatrix, SeveralWatchpoints) {
  const Watches sets[] = {
      {P::kWide, P::kWide + 12},                       // of one instruction
      {P::kStack - 12, P::kStack - 8, P::kStack - 4},  // of one fault, and others
      {P::kFilled, P::kFilled + 4, P::kFilled + 8},    // of one REP
      {P::kCount, P::kWide + 8, P::kFilled + 4, P::kStack - 8},
      {P::kCount, P::kCount + 0x2000},  // nothing is stored to the other
  };
  for (const Watches& watches : sets) ASSERT_NO_FATAL_FAILURE(expect_all_right(watches));
}

/// Nothing is missed either where all else that ends moves is passed over.
TEST_F(WatchMatrix, WatchpointsThatNothingMeetsEndNoMove) {
  ASSERT_NO_FATAL_FAILURE(expect_all_right({0x5000}));
}

}  // namespace
}  // namespace citcat::test
