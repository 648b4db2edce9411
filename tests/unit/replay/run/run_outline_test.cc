// Two replays, compared by their outlines.

#include "replay/run/run_outline.h"

#include <gtest/gtest.h>

#include "replay/run/replay_session.h"
#include "unit/replay/machine/random_guest.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

constexpr std::uint64_t kOutlineLength = 20'000;

Recording guest(GuestMode mode) { return long_random_guest(mode, kOutlineLength); }

class RunOutlineTest : public TemporaryFolder {
 protected:
  std::optional<RunOutline> outline(const Recording& recording, ExecutionPath path,
                                    bool stopped = false) {
    RecordingFileWriter(this->path("r.citcat")).finish(recording);
    const RecordingFile file = RecordingFile::open(this->path("r.citcat"));
    SessionOptions options;
    options.check = false;
    options.path = path;
    ReplaySession session(file, nullptr, options);
    const std::atomic<bool> stop = stopped;
    return run_in_outline(session, stop);
  }
};

TEST_F(RunOutlineTest, IsTheSameByEitherPath) {
  for (const GuestMode mode : {GuestMode::kernel, GuestMode::user, GuestMode::real}) {
    const Recording recording = guest(mode);
    const auto by_blocks = outline(recording, ExecutionPath::blocks);
    ASSERT_TRUE(by_blocks);
    EXPECT_EQ(by_blocks->end, (Position{kOutlineLength, 0}));
    EXPECT_EQ(by_blocks->interrupts, recording.interrupts.size());
    EXPECT_TRUE(by_blocks == outline(recording, ExecutionPath::instructions));
  }
}

TEST_F(RunOutlineTest, IsAnotherWhereARegisterOrAByteIs) {
  const Recording recording = guest(GuestMode::kernel);
  const auto right = outline(recording, ExecutionPath::blocks);
  ASSERT_TRUE(right);
  Recording other = recording.clone();
  other.initial.dr[0] ^= 4;  // nothing in the program reads it
  EXPECT_FALSE(outline(other, ExecutionPath::blocks) == right);
  Recording changed = recording.clone();
  const std::uint8_t byte = 0x5a;
  changed.image.set(PhysAddr{0xfff00}, {&byte, 1});  // nor is it anywhere near there
  EXPECT_FALSE(outline(changed, ExecutionPath::blocks) == right);
}

TEST_F(RunOutlineTest, ThereIsNoneOfARunThatWasStopped) {
  EXPECT_FALSE(outline(guest(GuestMode::user), ExecutionPath::blocks, true));
}

}  // namespace
}  // namespace citcat::test
