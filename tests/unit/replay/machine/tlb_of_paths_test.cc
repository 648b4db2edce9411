// The TLB is part of a checkpoint and outlives changes of the page tables: block by block it must
// hold at every position what it holds where instructions run one by one, nothing less and nothing
// too early.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "capture/import/import.h"
#include "replay/session/replayer.h"
#include "unit/replay/machine/paged_guest.h"
#include "unit/replay/machine/random_guest.h"

namespace citcat {
namespace {

namespace fs = std::filesystem;

/// The pages held, each with its frame, in hexadecimal.
std::vector<std::string> pages(const std::vector<Tlb::Entry>& tlb) {
  std::vector<std::string> held;
  for (const Tlb::Entry& entry : tlb) {
    if (entry.tag == Tlb::Entry{}.tag) continue;
    char text[40];
    std::snprintf(text, sizeof text, "%08llx at %08x", static_cast<unsigned long long>(entry.tag),
                  static_cast<unsigned>(entry.frame));
    held.emplace_back(text);
  }
  std::sort(held.begin(), held.end());
  return held;
}

/// Positions: every `step` instructions.
void expect_same_tlb(const Recording& recording, std::uint64_t step) {
  ReplayOptions one_by_one;
  one_by_one.path = ExecutionPath::instructions;
  Replayer reference(recording, nullptr, std::move(one_by_one));
  Replayer replayer(recording, nullptr, {});
  std::size_t most = 0;
  for (std::uint64_t to = step;; to += step) {
    SCOPED_TRACE(testing::Message() << "at instruction " << to);
    reference.run_to({to, 0});
    replayer.run_to({to, 0});
    ASSERT_EQ(replayer.machine().position(), reference.machine().position());
    const auto expected = reference.machine().mmu().save(), found = replayer.machine().mmu().save();
    ASSERT_EQ(pages(found->itlb), pages(expected->itlb));
    ASSERT_EQ(pages(found->dtlb), pages(expected->dtlb));
    most = std::max(most, expected->dtlb.empty() ? 0 : pages(expected->dtlb).size());
    if (reference.machine().position() < Position{to, 0}) break;
  }
  EXPECT_GT(most, 1u);
}

TEST(TlbOfPaths, IsTheSameInRandomPrograms) {
  for (const GuestMode mode :
       {GuestMode::kernel, GuestMode::user, GuestMode::protected16, GuestMode::virtual8086}) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(guest_mode_name(mode) + ", seed " + std::to_string(seed));
      expect_same_tlb(random_guest(mode, seed, 3000, true), 7);
    }
  }
}

TEST(TlbOfPaths, IsTheSameInAnOperatingSystem) {
  const fs::path sample = fs::path(CITCAT_SOURCE_DIR) / "samples/linux";
  ImportOptions options;
  options.capture.internal_path = sample / "start.side.csv";
  expect_same_tlb(import_to_memory({sample / "start.bin.zst"}, options).recording, 499);
}

/// The pages of the stack and of what is moved to and from it are 8 MiB apart: a TLB for data of
/// Tlb::kDataEntries holds one of them at a time.
TEST(TlbOfPaths, IsTheSameWhereAnInstructionReadsOnePageAndWritesAnotherInItsPlace) {
  constexpr std::uint32_t kData = test::PagedGuest::kStack + (Tlb::kDataEntries << 12) - 0x100;
  for (const CpuModel model : {CpuModel::i486, CpuModel::p6}) {
    SCOPED_TRACE(cpu_model_name(model));
    test::PagedGuest guest(model);
    guest.add({0xa1}, {kData - 0x1000});  // mov eax,[...]
    for (int i = 0; i < 3; ++i) {
      guest.add({0xff, 0x35}, {kData});  // push dword [kData]
      guest.add({0x8f, 0x05}, {kData});  // pop dword [kData]
      guest.add({0x50, 0xa1}, {kData});  // push eax; mov eax,[kData]
      guest.add({0xa3}, {kData});        // mov [kData],eax
      guest.add({0x58});                 // pop eax
    }
    guest.recording.instructions = 19;
    expect_same_tlb(guest.recording, 1);
    expect_same_tlb(guest.recording, 19);
  }
}

}  // namespace
}  // namespace citcat
