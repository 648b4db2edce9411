// What is said of a verified recording: the routine in which it begins, and what its lines rest on.

#include "replay/run/accounting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>

#include "capture/import/import.h"
#include "replay/session/replayer.h"
#include "replay/verify/verifier.h"
#include "unit/replay/machine/paged_guest.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

class AccountingTest : public TemporaryFolder {
 protected:
  /// Accounts for a run of so many instructions.
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

/// A guest whose bus shows its stores alone, of a cache that is written through. What the account
/// says of an instruction is held to what a comparison makes of each bit that is another.
class LineTest : public ConfidenceTest {
 protected:
  static constexpr std::uint32_t kStored = kData + 0x100;
  static constexpr std::uint64_t kLoad = 1, kInstructions = 4;
  LineTest() {
    // Every byte that a load may read is known, whatever bit of the address is another.
    for (std::uint32_t i = 0; i < 0x200; i += 4) guest_.put_word(kData + i, 0x01010101);
    guest_.put_word(kData, kData + 0x40);
    guest_.put_word(kData + 8, 0x11223344);
    guest_.add({0x8b, 0x1d}, {kData});  // mov ebx,[kData]
    guest_.add({0x8b, 0x0b});           // mov ecx,[ebx]
    guest_.add({0xa1}, {kData + 8});    // mov eax,[kData+8]
    guest_.add({0xa3}, {kStored});      // mov [kStored],eax
    guest_.add({0x90});
    guest_.recording.instructions = kInstructions + 1;
    guest_.recording.bus = {CacheForm::write_through, 16, 4, 0xffffffff};
    BusTransaction stored;
    stored.op = BusOp::data_write;
    stored.flags = kPositionKnown;
    stored.address = PhysAddr{kStored};
    stored.size = 4;
    stored.position = {kInstructions - 1, 0};
    const std::uint8_t value[] = {0x44, 0x33, 0x22, 0x11};
    std::copy(std::begin(value), std::end(value), stored.data.begin());
    bus_.evidence.push_back(stored);
  }
  LineOrigins line(std::uint64_t instruction) {
    RecordingFileWriter writer(path("r.citcat"));
    writer.write(bus_.evidence.front());
    writer.finish(guest_.recording);
    return account(RecordingFile::open(path("r.citcat")), {}, kInstructions + 1, instruction)
        .line.value();
  }
  /// With another bit of the image.
  bool verifies_with(PhysAddr at, unsigned bit) {
    const std::uint8_t byte = guest_.recording.image.byte(at).value();
    guest_.recording.image.set(at, static_cast<std::uint8_t>(byte ^ 1u << bit));
    Verifier verifier(guest_.recording, bus_.read_evidence(), {});
    Replayer replayer(guest_.recording, &verifier, {});
    const bool agrees = !verifier.finish(replayer.run()).divergence;
    guest_.recording.image.set(at, byte);
    return agrees;
  }
  static Confirmation::Kind kind_of(const LineOrigins& line, std::uint32_t address) {
    for (const LineInput& input : line.inputs) {
      if (input.input.kind == UnconstrainedInput::Kind::memory &&
          input.input.address == PhysAddr{address}) {
        return input.confirmed.kind;
      }
    }
    ADD_FAILURE() << "the line is not made from " << std::hex << address;
    return Confirmation::Kind::none;
  }

  PagedGuest guest_;
  ImportedRecording bus_;  ///< its evidence alone
};

TEST_F(LineTest, AnInputThatNothingConfirmsMayBeAnother) {
  const LineOrigins load = line(kLoad);
  EXPECT_TRUE(load.complete);
  for (std::uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(kind_of(load, kData + i), Confirmation::Kind::none);
  }
  for (const unsigned bit : {2u, 3u, 4u}) {
    EXPECT_TRUE(verifies_with(PhysAddr{kData}, bit)) << bit;
  }
}

TEST_F(LineTest, AnInputThatAStoreConfirmsMayNot) {
  // The code of the load whose value is stored, and the value itself.
  const LineOrigins load = line(2);
  for (const LineInput& input : load.inputs) {
    if (input.input.kind != UnconstrainedInput::Kind::memory) continue;
    EXPECT_EQ(input.confirmed.kind, Confirmation::Kind::stored);
    EXPECT_EQ(input.confirmed.at.instruction, kInstructions - 1);
  }
  EXPECT_EQ(load.inputs.front().input.address, PhysAddr{PagedGuest::kMain + 8});
  EXPECT_FALSE(verifies_with(PhysAddr{PagedGuest::kMain + 9}, 4)) << "reads elsewhere";
  for (unsigned bit = 0; bit < 8; ++bit) {
    EXPECT_FALSE(verifies_with(PhysAddr{kData + 8}, bit)) << bit;
  }
}

TEST_F(LineTest, AByteThatIsReadAgainIsConfirmedByThat) {
  BusTransaction read;
  read.op = BusOp::data_read;
  read.flags = kPositionKnown;
  read.address = PhysAddr{kData};
  read.size = 4;
  RecordingFileWriter writer(path("r.citcat"));
  for (std::uint64_t at : {0, 1}) {
    read.position = {at, 0};
    read.index = at;
    writer.write(read);
  }
  writer.finish(guest_.recording);
  const auto known =
      account(RecordingFile::open(path("r.citcat")), {}, kInstructions, kLoad).line.value();
  EXPECT_EQ(kind_of(known, kData), Confirmation::Kind::seen_again);
}

TEST_F(LineTest, AnInstructionThatDidNotRunHasNone) {
  RecordingFileWriter(path("r.citcat")).finish(guest_.recording);
  EXPECT_FALSE(account(RecordingFile::open(path("r.citcat")), {}, 2, 3).line.has_value());
}

TEST(OriginSets, KeepWhatIsConstrainedWhereThatIsAskedFor) {
  OriginSets sets;
  sets.keep_constrained();
  const auto a = sets.add(), b = sets.add(), c = sets.add();
  const auto all = sets.unite(sets.unite(sets.of(a), sets.of(b)), sets.of(c));
  sets.constrain(sets.of(b));
  EXPECT_EQ(sets.members(all).size(), 3u);
  sets.keep_only({a, b});
  EXPECT_EQ(std::vector(sets.members(all).begin(), sets.members(all).end()), (std::vector{a}));
  EXPECT_TRUE(sets.constrained(b));
  EXPECT_FALSE(sets.constrained(a));
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
