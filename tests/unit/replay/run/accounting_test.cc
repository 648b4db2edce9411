// What is said of a verified recording: the routine in which it begins.

#include "replay/run/accounting.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "unit/replay/machine/paged_guest.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

class AccountingTest : public TemporaryFolder {
 protected:
  /// Of a run of so many instructions.
  Accounting account_of(PagedGuest& guest, std::uint64_t instructions) const {
    guest.recording.instructions = instructions;
    RecordingFileWriter(path("r.citcat")).finish(guest.recording);
    return account(RecordingFile::open(path("r.citcat")), {}, instructions);
  }
};

TEST_F(AccountingTest, TheRoutineThatTheRunBeginsInEndsWithItsOwnReturn) {
  PagedGuest guest;
  guest.add({0xe8}, {1});  // call to the second of these
  guest.add({0xc3});       // ret, which it returns to
  guest.add({0xc3});
  guest.add({0x90});
  guest.put_word(PagedGuest::kStack, PagedGuest::kMain + 7);
  const Accounting a = account_of(guest, 4);
  EXPECT_EQ(a.start_routine, 3u);
  EXPECT_EQ(a.instructions, 4u);
}

TEST_F(AccountingTest, ARoutineThatDoesNotReturnHasNoEnd) {
  PagedGuest guest;
  guest.add({0xe8}, {0});
  guest.add({0x90});
  EXPECT_EQ(account_of(guest, 2).start_routine, std::nullopt);
}

TEST_F(AccountingTest, ALongRoutineIsFollowedToItsEnd) {
  PagedGuest guest;
  guest.add({0xb9}, {3000});  // mov ecx,3000
  guest.add({0x49});          // dec ecx
  guest.add({0x75, 0xfd});    // jnz to it
  guest.add({0xc3});          // ret
  guest.add({0x90});
  guest.put_word(PagedGuest::kStack, PagedGuest::kMain + 9);
  EXPECT_EQ(account_of(guest, 6003).start_routine, 6002u);
}

class ConfidenceTest : public AccountingTest {
 protected:
  /// Names of what is not constrained: registers, and bytes of memory as numbers.
  std::set<std::string> unconstrained(PagedGuest& guest, std::uint64_t instructions) const {
    std::set<std::string> names;
    for (const UnconstrainedInput& input : account_of(guest, instructions).unconstrained) {
      names.insert(input.kind == UnconstrainedInput::Kind::memory
                       ? std::to_string(input.address.value - PagedGuest::kMain)
                       : input.name);
    }
    return names;
  }
  static constexpr std::uint32_t kData = 0x20000;
};

TEST_F(ConfidenceTest, CodeThatDoesNothingIsConstrainedByNothing) {
  PagedGuest guest;
  guest.add({0x90});           // nop
  guest.add({0xa3}, {kData});  // mov [kData],eax
  EXPECT_EQ(unconstrained(guest, 2), std::set<std::string>{"0"});
}

TEST_F(ConfidenceTest, WhatAStoreIsMadeFromIsConstrained) {
  PagedGuest guest;
  guest.add({0xa1}, {kData});      // mov eax,[kData]
  guest.add({0x01, 0xd8});         // add eax,ebx
  guest.add({0xa3}, {kData + 8});  // mov [kData+8],eax
  guest.put_word(kData, 1);
  EXPECT_EQ(unconstrained(guest, 3), std::set<std::string>{});
  EXPECT_EQ(unconstrained(guest, 2).size(), 7u) << "before it, the bytes of both instructions";
}

TEST_F(ConfidenceTest, AnAddressIsSeenWithoutACacheOnly) {
  PagedGuest guest;
  guest.add({0x8b, 0x03});  // mov eax,[ebx]
  guest.put_word(0, 0);
  guest.recording.bus.form = CacheForm::none;
  EXPECT_EQ(unconstrained(guest, 1).count("ebx"), 0u);
  guest.recording.bus.form = CacheForm::write_through;
  EXPECT_EQ(unconstrained(guest, 1).count("ebx"), 1u);
}

TEST_F(ConfidenceTest, ADecisionIsConstrainedByWhatRunsNext) {
  PagedGuest guest;
  guest.add({0x85, 0xc0});  // test eax,eax
  guest.add({0x74, 0x00});  // jz to the next
  EXPECT_EQ(unconstrained(guest, 2), std::set<std::string>{});
}

TEST_F(ConfidenceTest, AStoreToAWriteBackCacheIsSeenWhenItsLineIs) {
  PagedGuest guest;
  guest.add({0xa3}, {kData});  // mov [kData],eax
  guest.recording.bus.form = CacheForm::write_back;
  guest.recording.instructions = 1;
  EXPECT_EQ(unconstrained(guest, 1).size(), 5u);
  BusTransaction back;
  back.op = BusOp::data_write;
  back.flags = kLine | kWriteBack | kPositionKnown;
  back.address = PhysAddr{kData};
  back.size = 16;
  back.position = {1, 0};
  RecordingFileWriter writer(path("r.citcat"));
  writer.write(back);
  writer.finish(guest.recording);
  EXPECT_TRUE(account(RecordingFile::open(path("r.citcat")), {}, 1).unconstrained.empty());
}

TEST(OriginSets, ForgetWhatIsConstrainedAndKeepTheRest) {
  OriginSets sets;
  const auto a = sets.add(), b = sets.add(), c = sets.add();
  const auto ab = sets.unite(sets.of(a), sets.of(b));
  EXPECT_EQ(sets.unite(sets.of(b), sets.of(a)), ab);
  const auto abc = sets.unite(ab, sets.of(c));
  sets.constrain(sets.of(b));
  EXPECT_EQ(std::vector(sets.members(abc).begin(), sets.members(abc).end()), (std::vector{a, c}));
  EXPECT_TRUE(sets.constrained(b));
  EXPECT_FALSE(sets.constrained(a));
}

}  // namespace
}  // namespace citcat::test
