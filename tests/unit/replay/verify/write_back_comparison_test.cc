// A few instructions compared with what the bus of a write-back cache shows of them: fills of
// lines, and lines given up.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "capture/import/import.h"
#include "replay/verify/verifier.h"
#include "unit/replay/machine/paged_guest.h"

namespace citcat {
namespace {

using test::PagedGuest;

constexpr std::uint32_t kWrittenLine = 32;

class WriteBackComparison : public testing::Test {
 protected:
  WriteBackComparison() { recording().bus = {CacheForm::write_back, kWrittenLine, 8, 0xffffffff}; }
  Recording& recording() { return guest_.recording; }

  /// What the bus shows next, when so many instructions have been completed.
  BusTransaction& shown(BusOp op, std::uint32_t address, std::uint32_t size, std::uint64_t after,
                        unsigned flags = 0) {
    BusTransaction& t = bus_.evidence.emplace_back();
    t.index = bus_.evidence.size() - 1;
    t.op = op;
    t.address = PhysAddr{address};
    t.size = static_cast<std::uint8_t>(size);
    t.position = {after, 0};
    t.flags = static_cast<std::uint16_t>(flags | kPositionKnown | kLine);
    return t;
  }
  /// A fill of data. It is compared only where more is shown of later instructions: the capture may
  /// end in one.
  void filled(std::uint32_t address, std::uint64_t after, BusOp op = BusOp::data_read) {
    shown(op, address, kWrittenLine, after);
    ++recording().totals.line_fills;
  }

  /// Why the replay of `instructions` is not what the bus shows; empty where it is.
  std::string disagreement(std::uint64_t instructions, bool plain) {
    recording().instructions = instructions;
    VerifierOptions verifying;
    verifying.plain = plain;
    Verifier verifier(recording(), bus_.read_evidence(), verifying);
    ReplayOptions options;
    options.path = plain ? ExecutionPath::blocks : ExecutionPath::instructions;
    Replayer replayer(recording(), &verifier, options);
    const ReplayReport report = verifier.finish(replayer.run());
    final_ = verifier.compare_final(&captured_end_);
    return report.divergence ? report.divergence->reason : "";
  }

  PagedGuest guest_;
  ImportedRecording bus_;  ///< its evidence alone
  MemoryImage captured_end_;
  FinalMemory final_;  ///< of the last replay, against captured_end_
};

/// PAE, every page mapped globally: page-directory pointers at kPointers name kFirstDirectory,
/// those behind them kSecondDirectory.
class GlobalPages : public WriteBackComparison {
 protected:
  static constexpr std::uint64_t kInstructions = 4;
  static constexpr std::uint32_t kPointers = 0xa000, kOtherPointers = 0xa020,
                                 kFirstDirectory = 0xb000, kSecondDirectory = 0xc000,
                                 kPaeTable = 0xd000, kElsewhere = 0xe000;
  GlobalPages() {
    constexpr std::uint32_t kPaeAndGlobal = 0xa0, kGlobal = 0x100;
    constexpr std::uint32_t kRights =
        PagedGuest::kUsed | PagedGuest::kWritable | PagedGuest::kPresent;
    recording().initial.cr3 = kPointers;
    recording().initial.cr4 = kPaeAndGlobal;
    guest_.put_word(kPointers, kFirstDirectory | PagedGuest::kPresent);
    guest_.put_word(kOtherPointers, kSecondDirectory | PagedGuest::kPresent);
    guest_.put_word(kFirstDirectory, kPaeTable | kRights);
    guest_.put_word(kSecondDirectory, kPaeTable | kRights);
    for (std::uint32_t page = 0; page < PagedGuest::kFrames; ++page) {
      guest_.put_word(kPaeTable + 8 * page, page * kPageSize | kGlobal | kRights);
    }
    guest_.add({0xb8}, {kOtherPointers});  // mov eax,kOtherPointers
    guest_.add({0x0f, 0x22, 0xd8});        // mov cr3,eax
    guest_.add({0x90});
    guest_.add({0x90});
  }
  /// The disagreement at the instruction behind the load of CR3.
  std::string disagreement_after_walk_to(std::uint32_t directory, bool plain) {
    bus_.evidence.clear();
    filled(directory, 2);
    filled(PagedGuest::kMain, 3, BusOp::code_read);
    return disagreement(kInstructions, plain);
  }
};

/// The replay's TLB keeps all its pages over the load of CR3; a processor may have lost some.
TEST_F(GlobalPages, MayBeWalkedToThroughTheNewDirectory) {
  for (const bool plain : {false, true}) {
    EXPECT_EQ(disagreement_after_walk_to(kSecondDirectory, plain), "") << plain;
  }
}

TEST_F(GlobalPages, AreNotWalkedToThroughWhatIsNoDirectory) {
  for (const bool plain : {false, true}) {
    EXPECT_EQ(disagreement_after_walk_to(kElsewhere, plain),
              "the processor reads what the replay does not")
        << plain;
  }
}

/// A dword is stored to either half of a line, the line is given up, and later comes back with the
/// same bytes: by another bus master, says the recording.
class LineGivenUp : public WriteBackComparison, public testing::WithParamInterface<std::uint32_t> {
 protected:
  static constexpr std::uint32_t kAt = 0x20000, kValue = 0x11223344;
  static constexpr std::uint64_t kInstructions = 5;
  LineGivenUp() {
    guest_.add({0x90});
    guest_.add({0xc7, 0x05}, {stored_at(), kValue});  // mov dword [...],kValue
    guest_.add({0x90});
    guest_.add({0xa1}, {stored_at()});  // mov eax,[...]
    guest_.add({0x90});
  }
  static std::uint32_t stored_at() { return kAt + GetParam(); }
  static void put_value(std::uint8_t* to) {
    for (int i = 0; i < 4; ++i) to[i] = static_cast<std::uint8_t>(kValue >> 8 * i);
  }
  /// In one transaction.
  void given_up() {
    put_value(&shown(BusOp::data_write, kAt, kWrittenLine, 2, kWriteBack).data[GetParam()]);
  }
  void comes_back() {
    filled(kAt, 3);
    ExternalWrite w;
    w.address = PhysAddr{stored_at()};
    w.data.resize(4);
    put_value(w.data.data());
    w.position_known = true;
    w.position = {3, 0};
    w.transaction = bus_.evidence.back().index;
    recording().external_writes.push_back(w);
  }
};

TEST_P(LineGivenUp, MayComeBackWithWhatItHeld) {
  given_up();
  comes_back();
  EXPECT_EQ(disagreement(kInstructions, false), "");
}

TEST_P(LineGivenUp, IsMissedWhenItComesBackWithoutHavingBeenGivenUp) {
  comes_back();
  EXPECT_EQ(disagreement(kInstructions, false),
            "memory shows what the processor wrote, and no write-back of it was captured");
}

TEST_P(LineGivenUp, MayHaveBeenWrittenToByAnotherMasterAtTheEnd) {
  captured_end_.set(PhysAddr{stored_at()}, 0x55);
  filled(kAt, 3);
  EXPECT_EQ(disagreement(kInstructions, false), "");
  EXPECT_EQ(final_.different, 1u) << "it is in the cache";
  bus_.evidence.clear();
  given_up();
  EXPECT_EQ(disagreement(kInstructions, false), "");
  EXPECT_EQ(final_.different, 0u);
  EXPECT_EQ(final_.external_unseen, 1u);
}

/// Without counts of instructions a line was given up at some moment between two events.
TEST_P(LineGivenUp, MayHaveBeenGivenUpBetweenTwoStoresToIt) {
  guest_.add({0xc7, 0x05}, {stored_at(), ~kValue});
  guest_.add({0xe6, 0x80});  // out 80h,al
  given_up();
  for (BusTransaction& t : bus_.evidence) t.flags &= static_cast<std::uint16_t>(~kPositionKnown);
  BusTransaction& out = shown(BusOp::io_write, 0x80, 1, 0);
  out.flags = 0;
  out.data[0] = kValue & 0xff;
  EXPECT_EQ(disagreement(kInstructions + 2, false), "");
  guest_.put_word(PagedGuest::kMain + 7, ~kValue);
  EXPECT_NE(disagreement(kInstructions + 2, false), "");
}

/// REP STOSB is interrupted, and the line that it has stored to is given up in front of the
/// handler: at the same instruction, whose iterations count from zero again.
class InterruptedRepeat : public WriteBackComparison {
 protected:
  static constexpr std::uint32_t kAt = 0x20000, kCount = 8, kDone = 5, kGdt = 0x2000, kIdt = 0x3000,
                                 kHandler = 0x14000;
  static constexpr std::uint64_t kRepeat = 3, kInstructions = 8;
  InterruptedRepeat() {
    recording().initial.gdtr = {kGdt, 0x17};
    recording().initial.idtr = {kIdt, 0x7ff};
    guest_.put(kGdt + 8, {0xff, 0xff, 0, 0, 0, 0x9b, 0xcf, 0, 0xff, 0xff, 0, 0, 0, 0x93, 0xcf, 0});
    guest_.put(kIdt + 8 * 2, {0x00, 0x40, 8, 0, 0, 0x8e, 1, 0});
    guest_.put(kHandler, {0xcf});  // iret
    guest_.add({0xb9}, {kCount});  // mov ecx,kCount
    guest_.add({0xbf}, {kAt});     // mov edi,kAt
    guest_.add({0xb8}, {0x55});    // mov eax,55h
    guest_.add({0xf3, 0xaa});      // rep stosb
    guest_.add({0x90, 0x90, 0x90, 0x90});
    Interrupt& nmi = recording().interrupts.emplace_back();
    nmi.kind = Interrupt::Kind::nmi;
    nmi.vector = 2;
    nmi.position_known = true;
    nmi.position = {kRepeat, kDone};
  }
  void given_up_after(std::uint32_t iterations) {
    bus_.evidence.clear();
    BusTransaction& t = shown(BusOp::data_write, kAt, kWrittenLine, kRepeat, kWriteBack);
    for (std::uint32_t i = 0; i < iterations; ++i) t.data[i] = 0x55;
  }
};

TEST_F(InterruptedRepeat, MayHaveItsLineGivenUpBehindTheEvent) {
  given_up_after(kDone);
  EXPECT_EQ(disagreement(kInstructions, false), "");
}

TEST_F(InterruptedRepeat, GivesUpNoLineThatItNeverLeft) {
  given_up_after(kCount + 1);
  EXPECT_EQ(disagreement(kInstructions, false),
            "a line written back holds other bytes than the replay's memory");
}

/// REP STOSD over 4,096 lines. The cache gives up each line some time after it is full.
class RepeatOverManyLines : public WriteBackComparison {
 protected:
  static constexpr std::uint32_t kAt = 0x20000, kCount = 0x8000, kInLine = kWrittenLine / 4;
  static constexpr std::uint64_t kRepeat = 3, kInstructions = 6;
  RepeatOverManyLines() {
    guest_.add({0xb9}, {kCount});      // mov ecx,kCount
    guest_.add({0xbf}, {kAt});         // mov edi,kAt
    guest_.add({0xb8}, {0x55555555});  // mov eax,55555555h
    guest_.add({0xf3, 0xab});          // rep stosd
    guest_.add({0x90, 0x90});
    for (std::uint32_t line = 0; line < kCount / kInLine; ++line) {
      BusTransaction& t =
          shown(BusOp::data_write, kAt + line * kWrittenLine, kWrittenLine, kRepeat, kWriteBack);
      t.position.iteration = std::min((line + 1) * kInLine + 100, kCount - 1);
      t.data.fill(0x55);
    }
  }
  BusTransaction& line(std::size_t n) { return bus_.evidence[n]; }
};

TEST_F(RepeatOverManyLines, GivesUpLinesOnItsWay) {
  for (const bool plain : {false, true}) EXPECT_EQ(disagreement(kInstructions, plain), "");
}

TEST_F(RepeatOverManyLines, GivesUpNoLineWithAnotherByte) {
  line(4095).data[31] = 0x54;
  for (const bool plain : {false, true}) {
    EXPECT_EQ(disagreement(kInstructions, plain),
              "a line written back holds other bytes than the replay's memory");
  }
}

/// REP MOVSD past the cache. The processor walks to its pages more often than the replay does,
/// whose TLB holds them.
class RepeatBesideWalks : public WriteBackComparison {
 protected:
  static constexpr std::uint32_t kFrom = 0x20000, kTo = 0x28000, kCount = 0x1000;
  static constexpr std::uint64_t kRepeat = 3, kInstructions = 6;
  RepeatBesideWalks() {
    guest_.add({0xb9}, {kCount});  // mov ecx,kCount
    guest_.add({0xbe}, {kFrom});   // mov esi,kFrom
    guest_.add({0xbf}, {kTo});     // mov edi,kTo
    guest_.add({0xf3, 0xa5});      // rep movsd
    guest_.add({0x90, 0x90});
    for (std::uint32_t i = 0; i < kCount; ++i) {
      if (i % 16 == 0) {
        read_past_the_cache(PagedGuest::kDirectory, i);
        read_past_the_cache(PagedGuest::kTable + (kFrom + 4 * i) / kPageSize * 4, i);
      }
      read_past_the_cache(kFrom + 4 * i, i);
    }
  }
  void read_past_the_cache(std::uint32_t address, std::uint32_t iteration) {
    BusTransaction& t = shown(BusOp::data_read, address, 4, kRepeat, kUncacheable);
    t.flags &= static_cast<std::uint16_t>(~kLine);
    t.position.iteration = iteration;
    ++recording().totals.reads;
    ++recording().totals.line_fills;
  }
};

TEST_F(RepeatBesideWalks, ReadsItsOperandsBehindAnyNumberOfThem) {
  for (const bool plain : {false, true}) EXPECT_EQ(disagreement(kInstructions, plain), "");
}

TEST_F(RepeatBesideWalks, ReadsNothingElse) {
  bus_.evidence.back().address = PhysAddr{0x30000};
  filled(kFrom, kRepeat + 1);
  for (const bool plain : {false, true}) {
    EXPECT_EQ(disagreement(kInstructions, plain), "the processor reads what the replay does not");
  }
}

INSTANTIATE_TEST_SUITE_P(HalfOfTheLine, LineGivenUp, testing::Values(0u, 12u, 16u, 28u));

}  // namespace
}  // namespace citcat
