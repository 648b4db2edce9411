// A compared replay goes back to places and on from there, as it was or with other events.

#include "replay/verify/rewindable_replay.h"

#include <gtest/gtest.h>

#include "unit/replay/machine/watched_guest.h"

namespace citcat::test {
namespace {

class RewindableReplayTest : public testing::Test {
 protected:
  RewindableReplayTest() {
    WatchedGuest guest;
    // inc bx; in al,60h; mov [10h],al; mov [12h],bx; jmp 0
    guest.code({0x43, 0xe4, 0x60, 0xa2, 0x10, 0x00, 0x89, 0x1e, 0x12, 0x00, 0xeb, 0xf4});
    for (const std::uint32_t value : {0x11u, 0x22u, 0x33u}) guest.port_read(0x60, 1, value);
    imported_ = guest.record(15);
    imported_.recording.instructions = 15;
    schedule_ = imported_.recording;
    RewindableReplay::Options options;
    options.verifying.final_memory = false;
    replay_ = std::make_unique<RewindableReplay>(
        imported_.recording, schedule_, [this] { return imported_.read_evidence(); }, options);
  }
  /// To the end, where nothing of the evidence may be left.
  ReplayReport::End end() { return replay_->verifier().finish(replay_->run_to(kEnd)).end; }
  std::uint8_t stored() {
    return replay_->machine().memory().defined_byte(PhysAddr{0x30010}).value_or(0);
  }

  static constexpr Position kEnd{~std::uint64_t{0}, 0};
  ImportedRecording imported_;
  Schedule schedule_;
  std::unique_ptr<RewindableReplay> replay_;
};

TEST_F(RewindableReplayTest, AgreesAsOftenAsItGoesBack) {
  replay_->run_to({7, 0});
  replay_->hold();
  const RewindableReplay::Place place = replay_->here();
  EXPECT_EQ(place.position(), (Position{7, 0}));
  ASSERT_EQ(end(), ReplayReport::End::complete);
  const CpuState first = replay_->machine().save();
  for (int again = 0; again < 2; ++again) {
    replay_->go_back(place);
    EXPECT_EQ(replay_->machine().position(), (Position{7, 0}));
    EXPECT_EQ(stored(), 0x11);
    EXPECT_EQ(end(), ReplayReport::End::complete);
    EXPECT_EQ(stored(), 0x33);
    EXPECT_TRUE(replay_->machine().save() == first);
  }
}

TEST_F(RewindableReplayTest, IsGivenWhatItsScheduleHasByThen) {
  const auto read_gives = [this](std::uint32_t value) {
    IoRead read = schedule_.io_reads[1];
    read.value = value;
    schedule_.io_reads.replace(1, read);
  };
  replay_->run_to({5, 0});
  const RewindableReplay::Place place = replay_->here();
  read_gives(0x44);
  EXPECT_EQ(end(), ReplayReport::End::diverged);
  EXPECT_EQ(imported_.recording.io_reads[1].value, 0x22u);
  read_gives(0x22);
  replay_->go_back(place);
  EXPECT_EQ(end(), ReplayReport::End::complete);
}

TEST_F(RewindableReplayTest, ComparesWithTheEvidenceAsHintsCorrectIt) {
  const std::uint64_t first_store = [this] {
    for (const BusTransaction& t : imported_.evidence) {
      if (t.op == BusOp::data_write && t.address.value == 0x30010) return t.index;
    }
    return ~std::uint64_t{0};
  }();
  const RewindableReplay::Place place = replay_->here();
  Hint hint;
  hint.kind = Hint::Kind::captured_write;
  hint.transaction = first_store;
  hint.address.value = 0x30010;
  hint.data = {0x77};
  replay_->go_back(place, {hint});
  EXPECT_EQ(end(), ReplayReport::End::diverged);
  replay_->go_back(place);
  EXPECT_EQ(end(), ReplayReport::End::complete);
}

TEST_F(RewindableReplayTest, TakesRegistersFromHints) {
  const RewindableReplay::Place place = replay_->here();
  Hint hint;
  hint.kind = Hint::Kind::register_value;
  hint.name = "ebx";
  hint.value = 0x1233;
  replay_->compare(false);
  replay_->go_back(place, {hint});
  replay_->run_to({4, 0});
  EXPECT_EQ(get_register(replay_->machine().save(), "ebx"), 0x1234u);
  replay_->compare(true);
  replay_->go_back(place);
  EXPECT_EQ(end(), ReplayReport::End::complete);
}

}  // namespace
}  // namespace citcat::test
