// Code whose page comes to lie in another frame while the engine still has it translated: the
// processor executes what its TLB finds, by instructions and by blocks.

#include <gtest/gtest.h>

#include <cstdint>

#include "unit/replay/both_paths.h"
#include "unit/replay/paged_guest.h"

namespace citcat {
namespace {

using test::PagedGuest;

/// Pages 4 MiB apart share an entry of the TLB for code (Mmu::kCodeEntries).
class MovedCode : public testing::TestWithParam<ExecutionPath> {
 protected:
  /// Calls code in frame 13, so that it holds some; calls `code`; has `page` lie in frame 13; calls
  /// `other`, which drops that page from the TLB; clears AL; calls `code` again. Returns EAX after
  /// all the `instructions` of that.
  std::uint32_t run(std::uint32_t code, std::uint32_t page, std::uint32_t other,
                    std::uint64_t instructions) {
    guest.add({0xb9}, {0x13800});           // mov ecx,13800h
    guest.add({0xff, 0xd1, 0xbb}, {code});  // call ecx; mov ebx,code
    guest.add({0xff, 0xd3});                // call ebx
    guest.move_page(page, 0x13);
    guest.add({0xb9}, {other});                        // mov ecx,other
    guest.add({0xff, 0xd1, 0xb0, 0, 0xff, 0xd3}, {});  // call ecx; mov al,0; call ebx
    return guest.run(instructions, GetParam()).cpu.gpr[kEax];
  }
  PagedGuest guest;
};

TEST_P(MovedCode, IsExecutedWhereItIsWhenAnInstructionReachesIntoIt) {
  guest.put(0x10ffe, {0xb8, 0x11});              // mov eax,...
  guest.put(0x11000, {0x11, 0x11, 0x11, 0xc3});  // ... 11111111h; ret
  guest.put(0x13000, {0x22, 0x22, 0x22, 0xc3});  // ... 22222211h; ret
  guest.put(0x13800, {0xc3});                    // ret
  EXPECT_EQ(run(0x10ffe, 0x11, 0x411800, 15), 0x22222211u);
}

TEST_P(MovedCode, IsExecutedWhereItIsAfterCode16MiBAway) {
  guest.put(0x10800, {0xb0, 0x11, 0xc3});  // mov al,11h; ret
  guest.put(0x13800, {0xb0, 0x22, 0xc3});  // mov al,22h; ret
  EXPECT_EQ(run(0x10800, 0x10, 0x1010800, 16), 0x22u);
}

INSTANTIATE_TEST_SUITE_P(, MovedCode, both_paths(), path_name);

}  // namespace
}  // namespace citcat
