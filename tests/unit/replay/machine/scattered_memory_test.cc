// Captures whose memory size nobody told may touch frames anywhere.

#include <gtest/gtest.h>

#include <vector>

#include "events/recording.h"
#include "replay/session/replayer.h"

namespace citcat {
namespace {

TEST(ScatteredMemory, MayLieAnywhereInFourGigabytes) {
  Recording recording;
  recording.initial.model = CpuModel::p6;
  recording.initial.cr0 = 0x11;
  recording.initial.eip = 0;
  recording.initial.segment.fill({0x10, 0, 0xffffffff, 0xc093, false});
  recording.initial.segment[kCs] = {8, 0, 0xffffffff, 0xc09b, false};
  // The first frame of every MiB begins with INC EAX and a JMP (E9 rel32) to the next of them.
  constexpr std::uint32_t kApart = 1u << 20, kFrames = 4096;
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    std::vector<std::uint8_t> code(16, 0x40);
    const std::uint32_t distance = kApart - 6;
    code[1] = 0xe9;
    for (unsigned b = 0; b < 4; ++b) code[2 + b] = static_cast<std::uint8_t>(distance >> (8 * b));
    recording.image.set(PhysAddr{i * kApart}, code);
  }
  recording.image.set(PhysAddr{0xfffff000}, std::vector<std::uint8_t>(kPageSize, 0x90));
  ReplayOptions options;
  options.to = 2 * kFrames;
  Replayer replayer(recording, nullptr, options);
  const ReplayReport report = replayer.run();
  EXPECT_EQ(report.instructions, 2 * kFrames);
  EXPECT_EQ(replayer.machine().save().gpr[kEax], kFrames);
}

}  // namespace
}  // namespace citcat
