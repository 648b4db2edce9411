// What another master has written where the frame of an interrupt goes. Its lines are filled by the
// delivery itself, so that the bus shows a write of another processor only after the interrupt. A
// device may also write after the frame was, as an emulator does that stores another frame.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "replay/machine/machine.h"
#include "replay/session/replayer.h"
#include "unit/debugger/watched_program.h"

namespace citcat::test {
namespace {

using P = WatchedProgram;

constexpr std::uint32_t kWritten = 0xaaaaaaaa;

/// EIP in the frame of an interrupt at `at`, and the dword above the frame, where a write that the
/// bus shows after the interrupt goes over both.
std::vector<std::uint32_t> left_at(Position at, bool shares_bus) {
  P program;
  Recording& recording = program.recording();
  recording.shares_bus = shares_bus;
  recording.initial.eflags = 0x202;
  Interrupt interrupt;
  interrupt.vector = 0x10;
  interrupt.position_known = true;
  interrupt.position = at;
  interrupt.transaction = 7;
  recording.interrupts.push_back(interrupt);
  ExternalWrite write;
  write.address = PhysAddr{P::kStack - 16};
  write.data.assign(32, kWritten & 0xff);
  write.position_known = true;
  write.position = at;
  write.transaction = 8;
  recording.external_writes.push_back(write);
  Replayer replayer(recording, nullptr, {});
  replayer.run_to(at.instruction + 1);
  std::vector<std::uint32_t> found;
  for (const std::uint32_t address : {P::kStack - 12, P::kStack}) {
    std::uint32_t value = 0;
    std::memcpy(&value, replayer.machine().memory().host(PhysAddr{address}), sizeof value);
    found.push_back(value);
  }
  return found;
}

constexpr Position kBehindStore{3, 0};
constexpr Position kWithinRep{22, 2};  // two instructions, five times three, and five

TEST(InterruptedWrites, OfAnotherProcessorWereThereBeforeTheFrame) {
  EXPECT_EQ(left_at(kBehindStore, true), (std::vector<std::uint32_t>{P::kBehindStore, kWritten}));
  EXPECT_EQ(left_at(kWithinRep, true), (std::vector<std::uint32_t>{P::kString, kWritten}));
}

TEST(InterruptedWrites, OfADeviceComeInTheOrderOfTheBus) {
  EXPECT_EQ(left_at(kBehindStore, false), (std::vector<std::uint32_t>{kWritten, kWritten}));
}

}  // namespace
}  // namespace citcat::test
