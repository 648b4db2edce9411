// Page tables with PAE outside long mode (Intel SDM vol. 3, 4.4): no-execute pages and reserved
// bits.

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "replay/session/replayer.h"
#include "unit/replay/machine/long_mode_guest.h"

namespace citcat {
namespace {

/// Error codes of page faults: Intel SDM vol. 3, figure 4-12.
constexpr std::uint64_t kWasPresent = 1, kWasReserved = 8, kWasFetch = 0x10;

/// 32-bit code with PAE and page tables, which reads at EAX and jumps there; a page fault leads to
/// 18000, with its error code on the stack. The same memory is at 0, through tables, at 400000,
/// through the same ones, and at 600000, as a page of 2 MiB.
class PaeGuest : public LongModeGuest {
 protected:
  static constexpr std::uint32_t kTable = 0x7000, kTarget = kCode + 0x1000, kDirectory = 0x3000,
                                 kByTable = 0x400000, kByLargePage = 0x600000;
  static constexpr std::uint64_t kNoExecute = std::uint64_t{1} << 63;

  void SetUp() override {
    LongModeGuest::SetUp();
    begin_in_protected_mode();
    put_quad(kDirectory, kTable | 7);
    for (std::uint32_t page = 0; page < 0x40; ++page) put_quad(kTable + 8 * page, page << 12 | 7);
    put_quad(kGdt + 8, 0x00cf9b000000ffff);
    put_quad(kIdt + 8 * 14, 0x00018e0000080000 | (kHandler & 0xffff));
    put(kCode, {0x8b, 0x18, 0xff, 0xe0});  // mov ebx, [eax]; jmp eax
    put(kTarget, {0x90, 0xeb, 0xfd});
    put(kHandler, {0x58, 0xeb, 0xfe});  // pop eax; jmp $
    set("efer", 0x800);
  }
  void set(const char* name, std::uint64_t value) {
    ASSERT_TRUE(set_register(recording_.initial, name, value)) << name;
  }
  void map_target(std::uint64_t bits) {
    put_quad(kTable + 8 * (kTarget >> 12), kTarget | 7 | bits);
  }
  void map_by_table(std::uint64_t bits) { put_quad(kDirectory + 16, kTable | 7 | bits); }
  void map_by_large_page(std::uint64_t bits) { put_quad(kDirectory + 24, 0x87 | bits); }
  /// The error code of the page fault; nullopt where there was none.
  std::optional<std::uint64_t> fault_at(std::uint32_t base) {
    set("rax", base + kTarget);
    if (run(3).exceptions == 0) return std::nullopt;
    EXPECT_EQ(after("cr2"), base + kTarget);
    return after("rax");
  }
};

TEST_F(PaeGuest, APageThatMayNotBeExecutedIsReadAndNotFetchedFrom) {
  constexpr std::uint64_t kFetch = kWasPresent | kWasFetch;
  map_by_table(0);
  map_by_large_page(0);
  for (const std::uint32_t base : {0u, kByTable, kByLargePage}) {
    EXPECT_EQ(fault_at(base), std::nullopt);
  }
  map_by_table(kNoExecute);
  map_by_large_page(kNoExecute);
  EXPECT_EQ(fault_at(0), std::nullopt);
  EXPECT_EQ(fault_at(kByTable), kFetch);
  EXPECT_EQ(fault_at(kByLargePage), kFetch);
  map_target(kNoExecute);
  map_by_table(0);
  EXPECT_EQ(fault_at(0), kFetch);
  EXPECT_EQ(fault_at(kByTable), kFetch);
}

// Intel SDM vol. 3, tables 4-9 to 4-11.
TEST_F(PaeGuest, BitsAboveAnAddressAreReserved) {
  constexpr std::uint64_t kRead = kWasPresent | kWasReserved;
  for (unsigned bit = 52; bit < 63; ++bit) {
    map_target(std::uint64_t{1} << bit);
    map_by_large_page(std::uint64_t{1} << bit);
    EXPECT_EQ(fault_at(0), kRead) << bit;
    EXPECT_EQ(fault_at(kByLargePage), kRead) << bit;
  }
  map_by_large_page(1 << 13);
  EXPECT_EQ(fault_at(kByLargePage), kRead) << "below the address of a large page";
  set("efer", 0);
  map_target(kNoExecute);
  EXPECT_EQ(fault_at(0), kRead) << "without EFER.NXE";
  set_cpuid(1u << 31);
  EXPECT_EQ(fault_at(0), kWasReserved) << "in QEMU";
}

}  // namespace
}  // namespace citcat
