// What is said of a verified recording: the routine in which it begins.

#include "replay/run/accounting.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace citcat::test
