// What lines that leave a cache tell of an interrupt and its handler.

#include "replay/infer/places/frame_watch.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "replay/session/replayer.h"
#include "unit/replay/machine/watched_guest.h"

namespace citcat::test {
namespace {

constexpr std::size_t kId = 7;
constexpr PhysAddr kStack{0x200f0};  ///< line of the frame: IP at fa, CS at fc, flags at fe

/// Four instructions, an interrupt behind the second, PUSH AX and POP AX in its handler; then the
/// program pushes three times itself.
class FrameWatchTest : public testing::Test {
 protected:
  FrameWatchTest() {
    guest_.code({0x40, 0x43, 0x41, 0x42, 0x53, 0x53, 0x53, 0x53, 0x90});  // inc ×4, push bx ×4
    guest_.handler({0x50, 0x90, 0x58, 0xcf});                             // push; nop; pop; iret
    guest_.interrupt_at({2, 0});
    imported_ = guest_.record(20);
    imported_.recording.interrupts[0].position_known = true;
    imported_.recording.interrupts[0].position = {2, 0};
    ReplayOptions options;
    options.watch = [this](Position) {
      watch_.at_boundary();
      return false;
    };
    replayer_ = std::make_unique<Replayer>(imported_.recording, &watch_, std::move(options));
    watch_.begin(kId);
  }
  std::vector<FrameWatch::Found> after(std::uint64_t instructions) {
    replayer_->run_to(instructions);
    std::vector<std::uint8_t> line;
    for (std::uint32_t i = 0; i < 16; ++i)
      line.push_back(*replayer_->machine().memory().defined_byte(kStack.plus32(i)));
    return watch_.written_back(kStack, line);
  }

  WatchedGuest guest_;
  ImportedRecording imported_;
  FrameWatch watch_;
  std::unique_ptr<Replayer> replayer_;
};

TEST_F(FrameWatchTest, ShowsTheReturnAddressWithinTheHandler) {
  const auto found = after(4);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].id, kId);
  EXPECT_FALSE(found[0].returned);
  EXPECT_EQ(found[0].eip_mask, 0xffffu);
  EXPECT_EQ(found[0].eip, 2u);
  EXPECT_EQ(found[0].bytes.size(), 8u) << "frame and AX";
  EXPECT_EQ(found[0].bytes.front().address.value, 0x200f8u);
}

TEST_F(FrameWatchTest, KnowsThatTheHandlerHasComeBack) {
  const auto found = after(7);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].returned);
  EXPECT_EQ(found[0].eip, 2u);
}

TEST_F(FrameWatchTest, ForgetsWhatIsStoredOver) {
  const auto found = after(10);  // two pushes later, over flags and CS
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].bytes.size(), 4u);
  EXPECT_EQ(found[0].eip_mask, 0xffffu);
  const auto over_eip = after(11);
  ASSERT_EQ(over_eip.size(), 1u);
  EXPECT_EQ(over_eip[0].eip_mask, 0u);
  EXPECT_TRUE(after(12).empty()) << "and over AX";
}

TEST_F(FrameWatchTest, TellsNothingByLinesElsewhere) {
  after(4);
  const std::vector<std::uint8_t> line(16);
  EXPECT_TRUE(watch_.written_back(PhysAddr{0x200e0}, line).empty());
  EXPECT_TRUE(watch_.written_back(PhysAddr{0x20100}, line).empty());
}

TEST_F(FrameWatchTest, WatchesOnlyTheInterruptThatWasBegun) {
  watch_.restore({});
  EXPECT_TRUE(after(4).empty());
}

TEST_F(FrameWatchTest, GoesOnFromTheStateItIsPutBackTo) {
  after(4);
  const FrameWatch::State within = watch_.state();
  EXPECT_TRUE(after(12).empty());
  watch_.restore(within);
  const std::vector<std::uint8_t> line(16, 0x33);
  const auto found = watch_.written_back(kStack, line);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].eip, 0x3333u);
}

}  // namespace
}  // namespace citcat::test
