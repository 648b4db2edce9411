// Code that stores over its own block, whose next page has to be looked up just then: how much of
// it has run is counted right, by instructions and by blocks.

#include <gtest/gtest.h>

#include <cstdint>

#include "unit/replay/machine/both_paths.h"
#include "unit/replay/machine/paged_guest.h"
#include "unit/replay/machine/ring3.h"

namespace citcat {
namespace {

using test::PagedGuest;

class CallOfItself : public test::Ring3 {};

/// CALL EAX, to itself, stores FF 0F 81 00 over itself and the byte before: from its address on
/// there is JNO then, which reaches into a page that is not there.
TEST_P(CallOfItself, HasBeenMadeWhereWhatItStoresThereReachesIntoAnAbsentPage) {
  constexpr std::uint32_t kEnd = 0x811000, kCall = kEnd - 3;
  guest.put_word(entry_of(0x11000), 0);
  guest.put(kCall & 0xfffff, {0xff, 0xd0, 0x90});
  guest.put((kCall & 0xfffff) - 1, {0x43});  // inc ebx
  state().gpr[kEax] = kCall;
  state().gpr[kEsp] = kEnd;
  for (const std::uint32_t before : {0u, 1u}) {
    SCOPED_TRACE(before);
    state().eip = kCall - before;
    deliveries.list.clear();
    memory.clear();
    run(2 + before);
    ASSERT_EQ(deliveries.list.size(), 1u);
    EXPECT_EQ(deliveries.list.back().vector, 14);
    EXPECT_EQ(deliveries.list.back().eip, kCall);
    EXPECT_EQ(cpu.cr2, kEnd);
    EXPECT_EQ(cpu.gpr[kEbx], before);
    EXPECT_EQ(cpu.eip, kHandlers + 16 * 14 + 1);
    EXPECT_EQ(word(kKernelStack - 20), kCall);
    EXPECT_EQ(word(kKernelStack - 8), kEnd - 4);
  }
}

/// On a processor with one TLB for code and data. A block that begins in page 10h and ends in page
/// 11h clears the accessed bit of the latter, reads what takes its place in the TLB, and then
/// pushes over its own bytes, which it leaves as they are.
class PushOverItsBlock : public testing::TestWithParam<ExecutionPath> {};

TEST_P(PushOverItsBlock, IsMadeOnceWhereThePageItReachesIntoNeedsAnotherWalk) {
  constexpr std::uint32_t kBlock = 0x10ff1, kBehindPush = 0x11002,
                          kEntry = PagedGuest::kTable + 0x44, kOtherTable = 0xa000,
                          kPushed = kBlock + 2, kLoop = PagedGuest::kMain + 7;
  constexpr std::uint64_t kBefore = 3, kPasses = 10, kInstructions = 8;
  PagedGuest guest(CpuModel::i386);
  guest.put_word(PagedGuest::kDirectory + 8, kOtherTable | 0x67);
  guest.put_word(kOtherTable + 0x44, 0x20067);
  // Page 11h holds code by then, or the block would be taken for one that ends with its page.
  guest.put(0x11800, {0xc3});                          // ret
  guest.add({0xb9}, {0x11800});                        // mov ecx,11800h
  guest.add({0xff, 0xd1});                             // call ecx
  guest.add({0x80, 0x0d}, {kEntry});                   // or byte [kEntry],...
  guest.add({0x20, 0xbc}, {kPushed + 4});              // ...20h; mov esp,...
  guest.add({0x43, 0xe9}, {kBlock - (kLoop + 0x12)});  // inc ebx; jmp kBlock
  guest.put(kBlock, {0x80, 0x25});                     // and byte [kEntry],...
  guest.put_word(kPushed, kEntry);
  guest.put(kPushed + 4, {0xdf, 0xa0});  // ...0dfh; mov al,[811000h]
  guest.put_word(kPushed + 6, 0x811000);
  guest.put(kPushed + 10, {0x68});  // push
  guest.put_word(kPushed + 11, kEntry);
  guest.put(kBehindPush, {0xe9});  // jmp to the beginning
  guest.put_word(kBehindPush + 1, kLoop - (kBehindPush + 5));
  const auto outcome = guest.run(kBefore + kPasses * kInstructions, GetParam());
  EXPECT_EQ(outcome.cpu.gpr[kEbx], kPasses);
  EXPECT_EQ(outcome.cpu.eip, kLoop);
  EXPECT_EQ(outcome.cpu.gpr[kEsp], kPushed);
}

/// XOR of a dword that it lies in itself: made twice it would leave what was there.
class XorOfItself : public testing::TestWithParam<ExecutionPath> {};

TEST_P(XorOfItself, IsMadeOnce) {
  constexpr std::uint32_t kXor = PagedGuest::kMain + 2, kAt = kXor - 1;
  for (const int next : {0x40, 0x0f}) {  // inc eax; what is UD2 with the byte behind it
    SCOPED_TRACE(next);
    PagedGuest guest;
    guest.add({0x40, 0x40});
    guest.add({0x83, 0x35}, {kAt});  // xor dword [kAt],...
    guest.add({0x57, next, 0x0b});   // ...57h
    const auto before = guest.run(1, GetParam()).word(kAt);
    EXPECT_EQ(guest.run(3, GetParam()).word(kAt), before ^ 0x57);
  }
}

INSTANTIATE_TEST_SUITE_P(, XorOfItself, both_paths(), path_name);
INSTANTIATE_TEST_SUITE_P(, CallOfItself, both_paths(), path_name);
INSTANTIATE_TEST_SUITE_P(, PushOverItsBlock, both_paths(), path_name);

}  // namespace
}  // namespace citcat
