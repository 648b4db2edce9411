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

void put(Recording& r, std::uint32_t at, std::initializer_list<int> bytes) {
  for (const int b : bytes) r.image.set(PhysAddr{at++}, static_cast<std::uint8_t>(b));
}

void put_word(Recording& r, std::uint32_t at, std::uint32_t value) {
  for (std::uint32_t i = 0; i < 4; ++i) {
    r.image.set(PhysAddr{at + i}, static_cast<std::uint8_t>(value >> 8 * i));
  }
}

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
  for (std::uint32_t d = 0; d < 1024; ++d) put_word(r, kDirectory + 4 * d, kTable | 0x63);
  for (std::uint32_t p = 0; p < kFrames; ++p) put_word(r, kTable + 4 * p, p << 12 | 0x63);
  return r;
}

class MovedCode : public testing::TestWithParam<ExecutionPath> {
 protected:
  /// Calls code in frame 13, so that it holds some; calls `code`; has the page of the table's entry
  /// at `entry` lie in frame 13; calls `other`, which drops that page from the TLB; clears AL;
  /// calls `code` again. Returns EAX after all the `instructions` of that.
  static std::uint32_t run(Recording& recording, std::uint32_t code, std::uint32_t entry,
                           std::uint32_t other, std::uint64_t instructions) {
    std::uint32_t at = kMain;
    const auto add = [&](std::initializer_list<int> opcode,
                         std::initializer_list<std::uint32_t> values) {
      put(recording, at, opcode);
      at += static_cast<std::uint32_t>(opcode.size());
      for (const std::uint32_t value : values) {
        put_word(recording, at, value);
        at += 4;
      }
    };
    add({0xb9}, {0x13800});                           // mov ecx,13800h
    add({0xff, 0xd1, 0xbb}, {code});                  // call ecx; mov ebx,code
    add({0xff, 0xd3, 0xc7, 0x05}, {entry, 0x13063});  // call ebx; mov [entry],13063h
    add({0xb9}, {other});                             // mov ecx,other
    add({0xff, 0xd1, 0xb0, 0, 0xff, 0xd3}, {});       // call ecx; mov al,0; call ebx
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
  EXPECT_EQ(run(r, 0x10ffe, kTable + 4 * 0x11, 0x411800, 15), 0x22222211u);
}

TEST_P(MovedCode, IsExecutedWhereItIsAfterCode16MiBAway) {
  Recording r = paged_guest();
  put(r, 0x10800, {0xb0, 0x11, 0xc3});  // mov al,11h; ret
  put(r, 0x13800, {0xb0, 0x22, 0xc3});  // mov al,22h; ret
  EXPECT_EQ(run(r, 0x10800, kTable + 4 * 0x10, 0x1010800, 16), 0x22u);
}

INSTANTIATE_TEST_SUITE_P(, MovedCode,
                         testing::Values(ExecutionPath::instructions, ExecutionPath::blocks),
                         [](const auto& path) {
                           return path.param == ExecutionPath::blocks ? "ByBlocks"
                                                                      : "ByInstructions";
                         });

}  // namespace
}  // namespace citcat
