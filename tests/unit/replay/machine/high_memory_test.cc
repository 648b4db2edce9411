// Memory beyond 4 GiB: tables, pages, code, CR3.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "replay/session/replayer.h"
#include "replay/trace/address_space_records.h"
#include "unit/replay/machine/high_memory_guest.h"

namespace citcat {
namespace {

using testing::HasSubstr;

TEST_F(HighMemoryGuest, IsReadAndWrittenThroughTablesThere) {
  put(kCode, {0x48, 0x8b, 0x03, 0x48, 0x89, 0x43, 8});  // mov rax, [rbx]; mov [rbx + 8], rax
  ReplayOptions options;
  options.to = 2;
  Replayer replayer(recording_, nullptr, options);
  ASSERT_EQ(replayer.run().instructions, 2u);
  EXPECT_EQ(get_register(replayer.machine().save(), "rax"), 0x1122334455667788u);
  EXPECT_EQ(quad_at(replayer.machine(), kBeyond + kPage + 8), 0x1122334455667788u);
  EXPECT_EQ(quad_at(replayer.machine(), kBeyond + kTable), kBeyond | kPage | 0x67u) << "marked";
  EXPECT_EQ(quad_at(replayer.machine(), kBeyond + kPointers), kBeyond | kDirectory | 0x27u);
}

TEST_F(HighMemoryGuest, RunsCodeThere) {
  put(kBeyond + kPage, {0x48, 0xff, 0xc0, 0xeb, 0xfb});  // inc rax; jmp there
  put(kCode, {0xff, 0xe3});                              // jmp rbx
  ASSERT_EQ(run(201).instructions, 201u);
  EXPECT_EQ(after("rax"), 100u);
}

TEST_F(HighMemoryGuest, ALargePageIsReadAsFarAsTheCaptureShowsIt) {
  put_quad(kBeyond + kDirectory + 8, kBeyond | 0x87);
  set_register(recording_.initial, "rbx", kLinear + kPage);
  put(kCode, {0x48, 0x8b, 0x03, 0x48, 0x8b, 0x8b, 0, 0x10, 0, 0});  // and mov rcx, [rbx + 1000]
  const ReplayReport report = run(2);
  EXPECT_EQ(report.instructions, 1u);
  EXPECT_EQ(after("rax"), 0x1122334455667788u);
  ASSERT_EQ(report.end, ReplayReport::End::diverged);
  EXPECT_THAT(report.divergence->reason, HasSubstr("at physical 6300015000"));
}

TEST_F(HighMemoryGuest, BitsBeyondAProcessorsAddressesAreReserved) {
  put_quad(kBeyond + kTable, 1ull << 40 | kPage | 7);
  put(kCode, {0x48, 0x8b, 0x03});
  put(kHandler, {0x58, 0xf4});  // pop rax: the error code; hlt
  EXPECT_EQ(run(1).end, ReplayReport::End::diverged) << "there might be such a page";
  recording_.initial.cpuid = {{0, 1, 0, 0, 0}, {0x80000008, 0x3024, 0, 0, 0}};
  run(1);
  EXPECT_EQ(after("rax"), 9u) << "present and reserved";
  recording_.initial.cpuid[1].eax = 0x3029;
  EXPECT_EQ(run(1).end, ReplayReport::End::diverged);
}

TEST_F(HighMemoryGuest, PagesOf1GiBAreReservedWhereTheProcessorHasNone) {
  constexpr std::uint32_t kHas = 1u << 26;
  put_quad(kTables + 8, kTables + 0x3007);
  put_quad(kTables + 0x3000, 0x87);
  set_register(recording_.initial, "rbx", 0x8000000000 + kData);
  put_quad(kData, 0x55);
  put(kCode, {0x48, 0x8b, 0x03});
  put(kHandler, {0x58, 0xf4});
  for (const std::uint32_t edx : {0u, kHas}) {
    recording_.initial.cpuid = {{0, 1, 0, 0, 0}, {0x80000001, 0, 0, 0, edx}};
    run(1);
    EXPECT_EQ(after("rax"), edx == kHas ? 0x55u : 9u);
  }
}

TEST_F(HighMemoryGuest, IsNotTheMemoryWithTheSameLowerAddressBits) {
  for (std::uint32_t at = 0; at < 8; ++at) recording_.image.set(PhysAddr{kPage + at}, 0x55);
  put(kCode, {0x48, 0x8b, 0x03, 0x48, 0x89, 0x43, 8, 0x48, 0x8b, 0x0c, 0x25, 0, 0x40, 1, 0});
  ASSERT_EQ(run(3).instructions, 3u);  // and mov [rbx + 8], rax; mov rcx, [14000]
  EXPECT_EQ(after("rcx"), 0x5555555555555555u);
  EXPECT_EQ(after("rax"), 0x1122334455667788u);
}

TEST_F(HighMemoryGuest, ReachesUpToTheLastAddressThatAProcessorHas) {
  constexpr std::uint64_t kLast = 0xffffffffff000;
  put_quad(kBeyond + kTable, kLast | 7);
  for (std::uint32_t i = 0; i < kPageSize; ++i) recording_.image.set(PhysAddr{kLast + i}, 0x77);
  put(kLast + 0x100, {0x48, 0xff, 0xc0, 0xeb, 0xfb});  // inc rax; jmp there
  put(kCode, {0x48, 0x8b, 0x03, 0x48, 0x89, 0x43, 8, 0x48, 0x8d, 0x9b, 0, 1, 0, 0, 0xff, 0xe3});
  ASSERT_EQ(run(204).instructions, 204u);  // mov rax, [rbx]; mov [rbx + 8], rax; then go there
  EXPECT_EQ(after("rax"), 0x7777777777777777u + 100);
}

TEST_F(HighMemoryGuest, Cr3IsTheMachinesWhereverItIsSeen) {
  // A second set of tables, whose first one is kPage.
  put_quad(kBeyond + kPage, kTables + 0x1007);
  put_quad(kBeyond + kPage + 8, kBeyond | kPointers | 7);
  set_register(recording_.initial, "rax", kBeyond | kPage | 8);
  put(kCode, {0x0f, 0x22, 0xd8, 0x0f, 0x20, 0xd9, 0x48, 0x8b, 0x13});
  run(3);  // mov cr3, rax; mov rcx, cr3; mov rdx, [rbx]
  EXPECT_EQ(after("rcx"), kBeyond | kPage | 8);
  EXPECT_EQ(after("cr3"), kBeyond | kPage | 8);
  EXPECT_EQ(after("rdx"), kTables + 0x1027u) << "marked";
  // A state that begins there.
  recording_.initial = after_;
  set_register(recording_.initial, "rip", kCode + 3);
  set_register(recording_.initial, "rdx", 0);
  run(2);
  EXPECT_EQ(after("rcx"), kBeyond | kPage | 8);
  EXPECT_EQ(after("rdx"), kTables + 0x1027u) << "marked";
}

TEST_F(HighMemoryGuest, AnSmiSavesTheMachinesCr3AndRsmLoadsIt) {
  put_quad(kBeyond + kPage, kTables + 0x1007);
  put_quad(kBeyond + kPage + 8, kBeyond | kPointers | 7);
  set_register(recording_.initial, "cr3", kBeyond | kPage);
  recording_.initial.smbase = 0x30000;
  put(0x38000, {0x66, 0x2e, 0xa1, 0x54, 0xff,        // mov eax, cs:[ff54]: the upper half of CR3
                0x67, 0x66, 0xa3, 0,    0,    2, 0,  // mov [20000], eax
                0x66, 0x2e, 0xa1, 0x50, 0xff,        // mov eax, cs:[ff50]
                0x67, 0x66, 0xa3, 4,    0,    2, 0,  // mov [20004], eax
                0x0f, 0xaa});                        // rsm
  Interrupt smi;
  smi.kind = Interrupt::Kind::smi;
  smi.vector = 0x64;  // the layout
  smi.position_known = true;
  recording_.interrupts.push_back(smi);
  put(kCode,
      {0x48, 0x8b, 0x13, 0x48, 0x8b, 0x0c, 0x25, 0, 0, 2, 0});  // mov rdx, [rbx]; mov rcx, [20000]
  ASSERT_EQ(run(7).instructions, 7u);
  EXPECT_EQ(after("rcx"), std::uint64_t{kPage} << 32 | kBeyond >> 32);
  EXPECT_EQ(after("cr3"), kBeyond | kPage);
  EXPECT_EQ(after("rdx"), kTables + 0x1027u) << "read through tables beyond 4 GiB";
}

TEST_F(HighMemoryGuest, PaeFindsItsDirectoriesTablesAndPagesThere) {
  begin_in_protected_mode();
  set_register(recording_.initial, "rbx", 0x40200000);
  put_quad(kTables + 8, kBeyond | kDirectory | 1);
  put(kCode, {0x8b, 0x03, 0x89, 0x43, 8});  // mov eax, [ebx]; mov [ebx + 8], eax
  ASSERT_EQ(run(2).instructions, 2u);
  EXPECT_EQ(after("rax"), 0x55667788u);
}

TEST_F(HighMemoryGuest, EntriesOfFourBytesNamePagesOf4MiBThere) {
  constexpr std::uint32_t kUpper = kBeyond >> 32 << 13;  // Intel SDM vol. 3, table 4-4
  begin_in_protected_mode();
  set_register(recording_.initial, "cr4", 0x10);
  set_register(recording_.initial, "cr3", kTables);
  set_register(recording_.initial, "rbx", 0x40000000 + kPage);
  put_quad(kTables, 0x87);
  put_quad(kTables + 4 * 0x100, kUpper | 0x87);
  put(kCode, {0x8b, 0x03, 0x89, 0x43, 8});  // mov eax, [ebx]; mov [ebx + 8], eax
  ASSERT_EQ(run(2).instructions, 2u);
  EXPECT_EQ(after("rax"), 0x55667788u);
}

TEST_F(HighMemoryGuest, FramesOfProcessAndTranslationRecordsAreTheMachines) {
  set_register(recording_.initial, "rax", kBeyond | kPage);
  put_quad(kBeyond + kPage, kTables + 0x1007);
  put_quad(kBeyond + kPage + 8, kBeyond | kPointers | 7);
  put(kCode, {0x0f, 0x22, 0xd8, 0x48, 0x8b, 0x13});  // mov cr3, rax; mov rdx, [rbx]
  ReplayOptions options;
  options.to = 2;
  Replayer replayer(recording_, nullptr, options);
  ASSERT_EQ(replayer.run().instructions, 2u);
  const std::vector<KtRecord> records = address_space_records(replayer.machine());
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records[0].pid, (kBeyond | kPage) >> 12);
  const auto page = std::find_if(records.begin(), records.end(), [](const KtRecord& r) {
    return r.kind == KtRecord::Kind::translation && r.wide_page() == kLinear;
  });
  ASSERT_NE(page, records.end());
  EXPECT_EQ(page->frame, (kBeyond | kPage) >> 12);
}

}  // namespace
}  // namespace citcat
