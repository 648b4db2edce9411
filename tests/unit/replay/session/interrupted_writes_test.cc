// What another processor has written where the frame of an interrupt goes: the lines of the frame
// are filled by the delivery itself, so that the bus shows the write after the interrupt.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "replay/machine/machine.h"
#include "replay/run/replay_timeline.h"
#include "unit/debugger/watched_program.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

using P = WatchedProgram;

class InterruptedWrites : public TemporaryFolder {
 protected:
  static constexpr std::uint8_t kVector = 0x10;

  /// EIP and the dword above EFLAGS in the frame of an interrupt at `at`, where the write is shown.
  std::vector<std::uint32_t> frame(Position at) {
    P program;
    Recording& recording = program.recording();
    recording.initial.eflags = 0x202;
    recording.instructions = at.instruction + 2;
    Interrupt interrupt;
    interrupt.vector = kVector;
    interrupt.position_known = true;
    interrupt.position = at;
    interrupt.transaction = 7;
    recording.interrupts.push_back(interrupt);
    ExternalWrite write;
    write.address = PhysAddr{P::kStack - 16};
    write.data.assign(32, 0xaa);
    write.position_known = true;
    write.position = at;
    write.transaction = 8;
    recording.external_writes.push_back(write);
    program.store(path("r.citcat"));
    const RecordingFile file = RecordingFile::open(path("r.citcat"));
    ReplayTimeline timeline(file, nullptr, {});
    timeline.seek({at.instruction + 1, 0});
    std::vector<std::uint32_t> found;
    for (const std::uint32_t address : {P::kStack - 12, P::kStack}) {
      std::uint32_t value = 0;
      std::memcpy(&value, timeline.machine().memory().host(PhysAddr{address}), sizeof value);
      found.push_back(value);
    }
    return found;
  }
};

TEST_F(InterruptedWrites, WereThereBeforeTheFrame) {
  constexpr std::uint64_t kBehindStore = 3;
  EXPECT_EQ(frame({kBehindStore, 0}), (std::vector<std::uint32_t>{P::kBehindStore, 0xaaaaaaaa}));
}

TEST_F(InterruptedWrites, WereThereBeforeTheFrameOfAnInterruptWithinARep) {
  constexpr std::uint64_t kRep = 22;  // instructions before it: two, five times three, and five
  EXPECT_EQ(frame({kRep, 2}), (std::vector<std::uint32_t>{P::kString, 0xaaaaaaaa}));
}

}  // namespace
}  // namespace citcat::test
