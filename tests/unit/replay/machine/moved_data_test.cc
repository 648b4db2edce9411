// A page with code and data that comes to lie in another frame, and no translation is invalidated:
// the processor reads and stores where its TLB for data has the page, and executes where that for
// code has it, by instructions and by blocks. Processors before the Pentium have one TLB for both.

#include <gtest/gtest.h>

#include <cstdint>

#include "unit/replay/machine/both_paths.h"
#include "unit/replay/machine/paged_guest.h"

namespace citcat {
namespace {

using test::PagedGuest;

constexpr std::uint32_t kShortCode = 0x10800, kFirstData = 0x10900, kOtherData = 0x10904;
/// The same places in the frame to which the page is moved.
constexpr std::uint32_t kMovedCode = 0x13800, kMovedData = 0x13900, kMovedOtherData = 0x13904;
constexpr std::uint32_t kHere = 0x11111111, kMovedValue = 0x22222222;

class MovedData : public testing::TestWithParam<ExecutionPath> {
 protected:
  /// Says in DL, when it is called, in which frame it is executed; beside it a dword says that too.
  static PagedGuest guest_of(CpuModel model) {
    PagedGuest guest(model);
    guest.put(kShortCode, {0xb2, 0x11, 0xc3});  // mov dl,11h; ret
    guest.put(kMovedCode, {0xb2, 0x22, 0xc3});  // mov dl,22h; ret
    guest.put_word(kFirstData, kHere);
    guest.put_word(kMovedData, kMovedValue);
    guest.add({0xb9}, {kShortCode});  // mov ecx,kShortCode
    guest.add({0xbb}, {0x410800});    // mov ebx,410800h
    return guest;
  }
  static constexpr std::uint64_t kFirst = 2;  ///< instructions of this
  static void call(PagedGuest& guest) { guest.add({0xff, 0xd1}); }
  static constexpr std::uint64_t kCall = 3;
  /// Calls code that shares the entry of the TLB for code.
  static void call_other(PagedGuest& guest) { guest.add({0xff, 0xd3}); }
  static void read(PagedGuest& guest) { guest.add({0xa1}, {kFirstData}); }   // mov eax,[kFirstData]
  static void store(PagedGuest& guest) { guest.add({0xa3}, {kOtherData}); }  // mov [...],eax

  /// Executes code of the page, moves it, and uses its data.
  static PagedGuest::Outcome move_after_code(CpuModel model) {
    PagedGuest guest = guest_of(model);
    call(guest);
    guest.move_page(0x10, 0x13);
    read(guest);
    store(guest);
    call(guest);
    return guest.run(kFirst + kCall + 3 + kCall, GetParam());
  }
  /// Uses data of the page, moves it, executes its code, and uses its data.
  static PagedGuest::Outcome move_after_data(CpuModel model, bool held_code) {
    PagedGuest guest = guest_of(model);
    std::uint64_t before = kFirst;
    if (held_code) {
      call(guest);
      call_other(guest);
      before += 2 * kCall;
    }
    read(guest);
    guest.move_page(0x10, 0x13);
    call(guest);
    read(guest);
    store(guest);
    return guest.run(before + 2 + kCall + 2, GetParam());
  }
  static std::uint32_t dl(const PagedGuest::Outcome& o) { return o.cpu.gpr[kEdx] & 0xff; }
};

TEST_P(MovedData, IsUsedWhereItIsThoughItsPagesCodeIsElsewhere) {
  const PagedGuest::Outcome found = move_after_code(CpuModel::p6);
  EXPECT_EQ(found.cpu.gpr[kEax], kMovedValue);
  EXPECT_EQ(found.word(kMovedOtherData), kMovedValue);
  EXPECT_EQ(found.word(kOtherData), 0u);
  EXPECT_EQ(dl(found), 0x11u);
}

TEST_P(MovedData, IsUsedWhereItWasWhenCodeOfItsPageIsFetchedElsewhere) {
  for (const bool held_code : {false, true}) {
    const PagedGuest::Outcome found = move_after_data(CpuModel::p6, held_code);
    EXPECT_EQ(found.cpu.gpr[kEax], kHere);
    EXPECT_EQ(found.word(kOtherData), kHere);
    EXPECT_EQ(found.word(kMovedOtherData), 0u);
    EXPECT_EQ(dl(found), 0x22u);
  }
}

TEST_P(MovedData, IsUsedWhereCodeOfItsPageWasFetchedByAProcessorWithOneTlb) {
  for (const CpuModel model : {CpuModel::i386, CpuModel::i486}) {
    const PagedGuest::Outcome found = move_after_code(model);
    EXPECT_EQ(found.cpu.gpr[kEax], kHere);
    EXPECT_EQ(found.word(kOtherData), kHere);
    EXPECT_EQ(found.word(kMovedOtherData), 0u);
    EXPECT_EQ(dl(found), 0x11u);
  }
}

TEST_P(MovedData, HasCodeOfItsPageFetchedWhereItWasUsedByAProcessorWithOneTlb) {
  for (const CpuModel model : {CpuModel::i386, CpuModel::i486}) {
    const PagedGuest::Outcome found = move_after_data(model, false);
    EXPECT_EQ(found.cpu.gpr[kEax], kHere);
    EXPECT_EQ(found.word(kOtherData), kHere);
    EXPECT_EQ(dl(found), 0x11u);
  }
}

/// A store to a clean page reads its entry anew, to mark it.
TEST_P(MovedData, IsUsedWhereTheFirstStoreFoundIt) {
  PagedGuest guest = guest_of(CpuModel::p6);
  guest.put_word(PagedGuest::kTable + 4 * 0x10, 0x10000 | 0x20 | PagedGuest::kWritable | 1);
  read(guest);
  guest.move_page(0x10, 0x13);
  store(guest);
  read(guest);
  const PagedGuest::Outcome found = guest.run(kFirst + 4, GetParam());
  EXPECT_EQ(found.cpu.gpr[kEax], kMovedValue);
  EXPECT_EQ(found.word(kMovedOtherData), kHere);
  EXPECT_EQ(found.word(kOtherData), 0u);
}

/// Intel SDM vol. 3, 4.10.4.1: a page fault drops the cached translation of its page.
TEST_P(MovedData, IsReadWhereItIsAfterAPageFault) {
  constexpr std::uint32_t kGdt = 0x1000, kIdt = 0x2000, kHandler = 0x12800, kPageFault = 14;
  PagedGuest guest = guest_of(CpuModel::p6);
  CpuState& state = guest.recording.initial;
  state.gdtr = {kGdt, 0x17};
  state.idtr = {kIdt, 8 * kPageFault + 7};
  guest.put_word(kGdt + 8, 0x0000ffff);
  guest.put_word(kGdt + 12, 0x00cf9b00);
  guest.put_word(kIdt + 8 * kPageFault, 8 << 16 | (kHandler & 0xffff));
  guest.put_word(kIdt + 8 * kPageFault + 4, (kHandler & 0xffff0000) | 0x8e00);
  // add esp,4; add dword [esp],5: the length of the store; iret
  guest.put(kHandler, {0x83, 0xc4, 4, 0x83, 0x04, 0x24, 5, 0xcf});
  guest.put_word(PagedGuest::kTable + 4 * 0x10, 0x10000 | 0x20 | 1);  // read only
  read(guest);
  guest.move_page(0x10, 0x13, 0);
  store(guest);
  read(guest);
  const PagedGuest::Outcome found = guest.run(kFirst + 2 + 3 + 1, GetParam());
  EXPECT_EQ(found.cpu.gpr[kEax], kMovedValue);
  EXPECT_EQ(found.word(kMovedOtherData), 0u);
  EXPECT_EQ(found.word(kOtherData), 0u);
}

INSTANTIATE_TEST_SUITE_P(, MovedData, both_paths(), path_name);

}  // namespace
}  // namespace citcat
