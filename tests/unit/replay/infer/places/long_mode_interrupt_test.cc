// What an interrupt of long mode and its handler leave in memory: what is searched for where nobody
// counted to it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "replay/infer/places/frame_watch.h"
#include "replay/infer/places/handler_saves.h"
#include "replay/session/count_tally.h"
#include "unit/replay/machine/long_mode_guest.h"

namespace citcat {
namespace {

constexpr std::uint8_t kVector = 0x20;
constexpr std::uint64_t kHigh = 0xffffffff80000000;  ///< where physical memory begins once more

/// NOPs at the end of linear memory; behind the second comes an interrupt, whose handler pushes R9
/// and RAX, takes them back and returns.
class LongModeInterrupt : public LongModeGuest {
 protected:
  static constexpr std::uint64_t kReturns = kHigh + kCode + 2;
  /// SS, RSP, RFLAGS, CS and RIP, eight bytes each, downward (SDM vol. 3, 6.14.2).
  static constexpr std::uint32_t kFrame = kStack - 5 * 8;

  void SetUp() override {
    LongModeGuest::SetUp();
    put_quad(kTables + 8 * 511, kTables + 0x1007);
    put_quad(kTables + 0x1000 + 8 * 510, kTables + 0x2007);
    put_quad(kIdt + 16 * kVector, 0x00018e0000080000 | (kHandler & 0xffff));
    set_register(recording_.initial, "rip", kHigh + kCode);
    set_register(recording_.initial, "rflags", 0x202);
    put(kCode, {0x90, 0x90, 0x90, 0x90});
    put(kHandler, {0x41, 0x51, 0x50, 0x58, 0x41, 0x59, 0x48, 0xcf});
    Interrupt interrupt;
    interrupt.vector = kVector;
    interrupt.position_known = true;
    interrupt.position = {2, 0};
    recording_.interrupts.push_back(interrupt);
  }
};

TEST_F(LongModeInterrupt, LeavesAReturnAddressOfEightBytes) {
  FrameWatch watch;
  ReplayOptions options;
  options.watch = [&watch](Position) {
    watch.at_boundary();
    return false;
  };
  Replayer replayer(recording_, &watch, options);
  watch.begin(3);
  const auto line_after = [&](std::uint64_t instructions) {
    replayer.run_to(instructions);
    const PhysAddr line{kFrame & ~31u};
    return watch.written_back(line, {replayer.machine().memory().host(line), 32});
  };
  const std::vector<FrameWatch::Found> within = line_after(3);
  ASSERT_EQ(within.size(), 1u);
  EXPECT_EQ(within[0].eip_mask, ~std::uint64_t{0});
  EXPECT_EQ(within[0].eip, kReturns);
  EXPECT_FALSE(within[0].returned);
  const std::vector<FrameWatch::Found> behind = line_after(8);
  ASSERT_EQ(behind.size(), 1u);
  EXPECT_TRUE(behind[0].returned);
}

TEST_F(LongModeInterrupt, TellsWhichRegistersItsHandlerSaved) {
  HandlerSaves saves;
  saves.begin();
  run(6, &saves);
  std::vector<int> numbers, sizes;
  std::vector<std::uint64_t> places;
  for (const SavedRegister& save : saves.saves()) {
    EXPECT_FALSE(save.is_segment);
    numbers.push_back(save.number);
    sizes.push_back(save.size);
    places.push_back(save.address.value);
  }
  EXPECT_THAT(numbers, testing::ElementsAre(9, 0));
  EXPECT_THAT(sizes, testing::ElementsAre(8, 8));
  EXPECT_THAT(places, testing::ElementsAre(kFrame - 8, kFrame - 16));
}

/// Counts are those of 32 bits: branches taken, and blocks.
TEST_F(LongModeInterrupt, HasItsPlaceByWhatAMonitorCountsInsteadOfInstructions) {
  recording_.interrupts.clear();
  put(kCode, {0xb9, 3, 0, 0, 0, 0xff, 0xc9, 0x75, 0xfc,  // mov ecx, 3; dec ecx; jnz back
              0x74, 0, 0x90});                           // jz to the next instruction; nop
  for (const auto& [unit, count, doubtful] :
       {std::tuple{CountUnit::branches, 2u, 1u}, std::tuple{CountUnit::blocks, 4u, 0u}}) {
    CountTally tally(recording_, {unit, 0, true});
    ReplayOptions options;
    options.to = 9;
    Replayer replayer(recording_, &tally, options);
    replayer.run();
    EXPECT_TRUE(tally.is_plainly({unit, count, true}));
    EXPECT_TRUE(tally.may_be({unit, count + doubtful, true}));
    EXPECT_FALSE(tally.may_be({unit, count + doubtful + 1, true}));
    EXPECT_FALSE(tally.may_be({unit, count - 1, true}));
  }
}

}  // namespace
}  // namespace citcat
