// Code whose page comes to lie in another frame while the engine still has it translated: the
// processor executes what its TLB finds, by instructions and by blocks.

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>

#include "events/recording.h"
#include "replay/replayer.h"

namespace citcat {
namespace {

/// Ring 0 with paging. Every 4 MiB of linear memory are the same frames 0 to 3f; pages that far
/// apart share an entry of the TLB for code (Mmu::kCodeEntries).
constexpr std::uint32_t kDirectory = 0x8000, kTable = 0x9000, kMain = 0x12000, kStack = 0x30f00,
                        kFrames = 0x40;

Recording paged_guest() {
  Recording r;
  CpuState& s = r.initial;
  s.model = CpuModel::p6;
  s.ram_bytes = kFrames * kPageSize;
  s.cr0 = 0x80000011;
  s.cr3 = kDirectory;
  s.eip = kMain;
  s.gpr[kEsp] = kStack;
  s.segment.fill({0x10, 0, 0xffffffff, 0xc093, false});
  s.segment[kCs] = {8, 0, 0xffffffff, 0xc09b, false};
  for (std::uint32_t a = 0; a < s.ram_bytes; ++a) r.image.set(PhysAddr{a}, 0);
  const auto entry = [&](std::uint32_t at, std::uint32_t value) {
    for (std::uint32_t i = 0; i < 4; ++i) {
      r.image.set(PhysAddr{at + i}, static_cast<std::uint8_t>(value >> 8 * i));
    }
  };
  for (std::uint32_t d = 0; d < 1024; ++d) entry(kDirectory + 4 * d, kTable | 0x63);
  for (std::uint32_t p = 0; p < kFrames; ++p) entry(kTable + 4 * p, p << 12 | 0x63);
  return r;
}

void put(Recording& r, std::uint32_t at, std::initializer_list<int> bytes) {
  for (const int b : bytes) r.image.set(PhysAddr{at++}, static_cast<std::uint8_t>(b));
}

class MovedCode : public testing::TestWithParam<ExecutionPath> {
 protected:
  /// EAX after so many instructions.
  static std::uint32_t run(Recording& recording, std::uint64_t instructions) {
    recording.instructions = instructions;
    ReplayOptions options;
    options.path = GetParam();
    Replayer replayer(recording, nullptr, options);
    EXPECT_EQ(replayer.run().instructions, instructions);
    return replayer.machine().save().gpr[kEax];
  }
};

TEST_P(MovedCode, IsExecutedWhereItIsWhenAnInstructionReachesIntoIt) {
  Recording r = paged_guest();
  put(r, 0x10ffe, {0xb8, 0x11});              // mov eax,...
  put(r, 0x11000, {0x11, 0x11, 0x11, 0xc3});  // ... 11111111h; ret
  put(r, 0x13000, {0x22, 0x22, 0x22, 0xc3});  // ... 22222211h; ret
  put(r, 0x13800, {0xc3});                    // ret
  put(r, kMain,
      {0xb9, 0x00, 0x38, 0x01, 0,  // mov ecx,13800h
       0xff, 0xd1,                 // call ecx: frame 13 holds code from now on
       0xbb, 0xfe, 0x0f, 0x01, 0,  // mov ebx,10ffeh
       0xff, 0xd3,                 // call ebx
       0xc7, 0x05, 0x44, 0x90, 0, 0, 0x63, 0x30, 0x01, 0,  // page 11 comes to lie in frame 13 ...
       0xb9, 0x00, 0x18, 0x41, 0,                          // mov ecx,411800h
       0xff, 0xd1,                                         // call ecx: ... and leaves the TLB
       0xff, 0xd3});                                       // call ebx
  EXPECT_EQ(run(r, 14), 0x22222211u);
}

TEST_P(MovedCode, IsExecutedWhereItIsAfterCode16MiBAway) {
  Recording r = paged_guest();
  put(r, 0x10800, {0xb0, 0x11, 0xc3});  // mov al,11h; ret
  put(r, 0x13800, {0xb0, 0x22, 0xc3});  // mov al,22h; ret
  put(r, kMain,
      {0xb9, 0x00, 0x38, 0x01, 0,  // mov ecx,13800h
       0xff, 0xd1,                 // call ecx: frame 13 holds code from now on
       0xbb, 0x00, 0x08, 0x01, 0,  // mov ebx,10800h
       0xff, 0xd3,                 // call ebx
       0xc7, 0x05, 0x40, 0x90, 0, 0, 0x63, 0x30, 0x01, 0,  // page 10 comes to lie in frame 13 ...
       0xb9, 0x00, 0x08, 0x01, 1,                          // mov ecx,1010800h
       0xff, 0xd1,                                         // call ecx: ... and leaves the TLB
       0xb0, 0x00,                                         // mov al,0
       0xff, 0xd3});                                       // call ebx
  EXPECT_EQ(run(r, 16), 0x22u);
}

INSTANTIATE_TEST_SUITE_P(, MovedCode,
                         testing::Values(ExecutionPath::instructions, ExecutionPath::blocks),
                         [](const auto& path) {
                           return path.param == ExecutionPath::blocks ? "ByBlocks"
                                                                      : "ByInstructions";
                         });

}  // namespace
}  // namespace citcat
