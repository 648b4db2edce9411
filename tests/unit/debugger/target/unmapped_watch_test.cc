// A watchpoint on an address that is not mapped when a move begins is met after it is mapped.

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "debugger/target/debug_target.h"
#include "unit/replay/machine/paged_guest.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

using Why = MoveEnd::Why;

class UnmappedWatch : public TemporaryFolder {
 protected:
  DebugTarget& target(const Recording& recording, std::uint64_t instructions) {
    Recording limited = recording.clone();
    limited.instructions = instructions;
    RecordingFileWriter(path("r.citcat")).finish(limited);
    file_.emplace(RecordingFile::open(path("r.citcat")));
    target_.emplace(*file_, ComparisonPolicy{}, false);
    return *target_;
  }
  /// The move ends with the watchpoint, and the machine is at `position` then.
  void expect_met(const MoveEnd& end, std::uint64_t position) {
    EXPECT_EQ(end.why, Why::watchpoint);
    EXPECT_EQ(target_->timeline().position().instruction, position);
  }

  std::optional<RecordingFile> file_;
  std::optional<DebugTarget> target_;
};

constexpr std::uint32_t kPage = 0x50, kFrame = 0x20, kUnmappedPlace = kPage * kPageSize + 0x10;

/// Four stores to the frame: while the page is not there yet, while it lies there, twice, and when
/// it has been taken away.
class UnmappedPage : public UnmappedWatch {
 protected:
  UnmappedPage() {
    guest_.put_word(PagedGuest::kTable + 4 * kPage, 0);
    const std::uint32_t alias = kFrame * kPageSize + 0x10;
    guest_.add({0xc7, 0x05}, {alias, 1});
    guest_.move_page(kPage, kFrame);
    guest_.add({0xc7, 0x05}, {alias, 2});
    guest_.add({0xc7, 0x05}, {kUnmappedPlace, 3});
    guest_.add({0xc7, 0x05}, {PagedGuest::kTable + 4 * kPage, 0});
    guest_.add({0x0f, 0x01, 0x3d}, {kUnmappedPlace});  // invlpg
    guest_.add({0xc7, 0x05}, {alias, 4});
    guest_.add({0x90});
  }
  static constexpr std::uint64_t kLength = 8;
  PagedGuest guest_;
};

TEST_F(UnmappedPage, IsMetOnceItIsMapped) {
  DebugTarget& its = target(guest_.recording, kLength);
  its.insert(StopKind::write_watchpoint, LinearAddr{kUnmappedPlace}, 4);
  expect_met(its.go_on({}), 3);  // by another address, too
  expect_met(its.go_on({}), 4);
}

TEST_F(UnmappedPage, IsMetWhereItWasMappedBefore) {
  DebugTarget& its = target(guest_.recording, kLength);
  its.timeline().seek({6, 0});
  ASSERT_FALSE(its.is_mapped(LinearAddr{kUnmappedPlace}, 4));
  its.insert(StopKind::write_watchpoint, LinearAddr{kUnmappedPlace}, 4);
  expect_met(its.go_back({}), 3);
  expect_met(its.go_back({}), 2);
}

TEST_F(UnmappedPage, IsNoStopWhereItIsMapped) {
  DebugTarget& its = target(guest_.recording, kLength);
  its.insert(StopKind::read_watchpoint, LinearAddr{kUnmappedPlace}, 4);
  EXPECT_EQ(its.go_on({}).why, Why::end);
}

}  // namespace
}  // namespace citcat::test
