// Code whose page comes to lie in another frame while the engine still has it translated: the
// processor executes what its TLB finds, by instructions and by blocks.

#include <gtest/gtest.h>

#include <cstdint>

#include "unit/replay/machine/both_paths.h"
#include "unit/replay/machine/paged_guest.h"

namespace citcat {
namespace {

using test::PagedGuest;

constexpr std::uint32_t kHandled = 0x33;

/// The handler of the exception puts kHandled into AL and stays.
void handle(PagedGuest& guest, std::uint32_t vector) {
  constexpr std::uint32_t kIdt = 0x1800, kHandler = 0x14000;
  guest.recording.initial.idtr = {kIdt, 0x7ff};
  guest.recording.initial.gdtr = {0x1000, 0xf};
  guest.put_word(0x1008, 0x0000ffff);  // 08h: flat code
  guest.put_word(0x100c, 0x00cf9b00);
  guest.put_word(kIdt + 8 * vector, 0x80000 | (kHandler & 0xffff));
  guest.put_word(kIdt + 8 * vector + 4, (kHandler & 0xffff0000) | 0x8e00);
  guest.put(kHandler, {0xb0, int{kHandled}, 0xeb, 0xfe});  // mov al,kHandled; jmp $
}

/// Pages 4 MiB apart share an entry of the TLB for code (Tlb::kCodeEntries).
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

TEST_P(MovedCode, IsRefusedByItsFirstBytesWhereverTheOthersLie) {
  handle(guest, 6);
  guest.put(0x11800, {0xc3});        // ret
  guest.put(0x10ffe, {0x8e, 0x0d});  // mov cs,[...
  guest.put(0x11000, {0, 0, 1, 0});  // ... 10000h]
  guest.put(0x13000, {0, 0, 2, 0});  // ... 20000h]
  guest.add({0xb9}, {0x11800});      // mov ecx,11800h
  guest.add({0xff, 0xd1}, {});       // call ecx
  guest.move_page(0x11, 0x13);
  guest.add({0x0f, 0x20, 0xd8, 0x0f, 0x22, 0xd8, 0xb9},
            {0x10ffe});         // mov eax,cr3; mov cr3,eax; mov ecx,...
  guest.add({0xff, 0xe1}, {});  // jmp ecx
  EXPECT_EQ(guest.run(40, GetParam()).cpu.gpr[kEax] & 0xff, kHandled);
}

TEST_P(MovedCode, IsExecutedWhereItIsAfterCode16MiBAway) {
  guest.put(0x10800, {0xb0, 0x11, 0xc3});  // mov al,11h; ret
  guest.put(0x13800, {0xb0, 0x22, 0xc3});  // mov al,22h; ret
  EXPECT_EQ(run(0x10800, 0x10, 0x1010800, 16), 0x22u);
}

/// Code in page 10h that changes the entry of its own page, drops it from the TLB, and goes on.
class CodeThatDropsItsPage : public testing::TestWithParam<ExecutionPath> {
 protected:
  static constexpr std::uint32_t kEntryAt = PagedGuest::kTable + 4 * 0x10, kEntry = 0x10067;

  /// mov eax,cr3; mov [entry],ecx; mov cr3,eax; mov al,`value`; ret
  void put_code(std::uint32_t at, int value) {
    guest.put(at, {0x0f, 0x20, 0xd8, 0x89, 0x0d});
    guest.put_word(at + 5, kEntryAt);
    guest.put(at + 9, {0x0f, 0x22, 0xd8, 0xb0, value, 0xc3});
  }
  /// Calls it often enough for blocks to be at home, and then with another entry: AL in the end.
  std::uint32_t run(std::uint32_t entry) {
    constexpr int kCalls = 20;
    put_code(0x10800, 0x11);
    guest.add({0xbb}, {0x10800});                              // mov ebx,10800h
    guest.add({0xb9}, {kEntry});                               // mov ecx,...
    for (int i = 0; i < kCalls; ++i) guest.add({0xff, 0xd3});  // call ebx
    guest.add({0xb9}, {entry});
    guest.add({0xff, 0xd3});
    guest.add({0xeb, 0xfe});  // jmp $
    return guest.run(kCalls * 6 + 100, GetParam()).cpu.gpr[kEax] & 0xff;
  }
  PagedGuest guest;
};

TEST_P(CodeThatDropsItsPage, GoesOnInTheFrameThatItThenLiesIn) {
  put_code(0x13800, 0x22);
  EXPECT_EQ(run(0x13067), 0x22u);
}

TEST_P(CodeThatDropsItsPage, FaultsWhereThePageIsNotThereAnyMore) {
  handle(guest, 14);
  EXPECT_EQ(run(0), kHandled);
}

INSTANTIATE_TEST_SUITE_P(, CodeThatDropsItsPage, both_paths(), path_name);
INSTANTIATE_TEST_SUITE_P(, MovedCode, both_paths(), path_name);

}  // namespace
}  // namespace citcat
