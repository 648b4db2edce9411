// Recordings and their schedules as values.

#include "events/recording.h"

#include <gtest/gtest.h>

#include "unit/events/archive/random_recording.h"

namespace citcat::test {
namespace {

TEST(Recording, ACopyHasEverythingAndIsItsOwn) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const Recording recording = RandomRecording(seed).recording();
    Recording copy = recording.clone();
    expect_equal(recording, copy);
    EXPECT_EQ(copy.handed_over.interrupts, recording.handed_over.interrupts);
    copy.image.set(PhysAddr{0x1234}, static_cast<std::uint8_t>(
                                         recording.image.byte(PhysAddr{0x1234}).value_or(0) + 1));
    EXPECT_NE(copy.image.byte(PhysAddr{0x1234}), recording.image.byte(PhysAddr{0x1234}));
  }
}

TEST(Recording, TakesAnotherScheduleAndKeepsTheRest) {
  Recording recording = RandomRecording(3).recording();
  const Recording before = recording.clone();
  Schedule schedule = recording.schedule();
  schedule.interrupts.emplace_back().vector = 0x21;
  schedule.io_reads.clear();
  recording.set_schedule(schedule);
  EXPECT_EQ(recording.interrupts.size(), before.interrupts.size() + 1);
  EXPECT_TRUE(recording.io_reads.empty());
  recording.set_schedule(before);
  expect_equal(before, recording);
}

}  // namespace
}  // namespace citcat::test
