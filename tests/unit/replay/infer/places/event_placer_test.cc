// Interrupts of small programs, taken at places the test knows and the recording does not.

#include "replay/infer/places/event_placer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "events/archive/recording_file.h"
#include "replay/session/time_budget.h"
#include "replay/verify/verifier.h"
#include "unit/replay/infer/registers/inferred_recording.h"
#include "unit/replay/machine/watched_guest.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

class EventPlacerTest : public testing::Test {
 protected:
  PlacementReport place(std::uint64_t instructions) {
    imported_ = guest_.record(instructions);
    for (const Interrupt& i : imported_.recording.interrupts) EXPECT_FALSE(i.position_known);
    return place_interrupts(imported_);
  }
  /// With the positions found, the run is the one that was recorded.
  void expect_match() {
    Verifier verifier(imported_.recording, imported_.read_evidence(), {});
    Replayer replayer(imported_.recording, &verifier, {});
    const ReplayReport report = replayer.run();
    EXPECT_EQ(report.end, ReplayReport::End::complete)
        << (report.divergence ? report.divergence->reason : "");
    EXPECT_EQ(verifier.totals().writes.checked, verifier.totals().writes.equal);
  }
  void expect_all(const PlacementReport& report, Placement placement) {
    ASSERT_EQ(report.events.size(), guest_.positions().size());
    EXPECT_FALSE(report.divergence);
    for (const PlacedEvent& e : report.events) {
      EXPECT_STREQ(placement_name(e.placement), placement_name(placement)) << e.interrupt;
    }
  }
  void expect_where_it_was(const PlacementReport& report) {
    for (std::size_t i = 0; i < report.events.size(); ++i) {
      EXPECT_EQ(report.events[i].position, guest_.positions()[i]) << i;
      EXPECT_EQ(imported_.recording.interrupts[i].position, guest_.positions()[i]) << i;
    }
  }

  WatchedGuest guest_;
  ImportedRecording imported_;
};

TEST_F(EventPlacerTest, TheReturnAddressNamesThePlaceInStraightCode) {
  guest_.code({0x40, 0x43, 0x41, 0x42, 0xa3, 0x10, 0x00, 0xf4});  // inc ×4, mov [10],ax, hlt
  guest_.handler({0xcf});                                         // iret
  guest_.interrupt_at({2, 0});
  const PlacementReport report = place(6);
  expect_all(report, Placement::unique);
  expect_where_it_was(report);
  expect_match();
}

TEST_F(EventPlacerTest, ARegisterTheHandlerSavesNamesTheRoundOfALongLoop) {
  // mov cx,5000; loop $; mov [10],cx
  guest_.code({0xb9, 0x88, 0x13, 0xe2, 0xfe, 0x89, 0x0e, 0x10, 0x00});
  guest_.handler({0x51, 0x59, 0xcf});  // push cx; pop cx; iret
  guest_.interrupt_at({3333, 0});
  const PlacementReport report = place(5006);
  expect_all(report, Placement::unique);
  expect_where_it_was(report);
  EXPECT_EQ(report.tried, 0u) << "the register alone decides";
  expect_match();
}

TEST_F(EventPlacerTest, WhatTheProgramStoresLaterNamesTheRoundToo) {
  // mov cx,40; L: inc ax; loop L
  guest_.code({0xb9, 0x28, 0x00, 0x40, 0xe2, 0xfd});
  guest_.handler({0xa3, 0x00, 0x00, 0xcf});  // mov [0],ax; iret
  guest_.interrupt_at({21, 0});
  const PlacementReport report = place(80);
  expect_all(report, Placement::unique);
  expect_where_it_was(report);
  expect_match();
}

TEST_F(EventPlacerTest, ReadsCountTheRoundsOfAPollingLoop) {
  guest_.code({0xa1, 0x20, 0x00, 0xeb, 0xfb});           // L: mov ax,[20]; jmp L
  guest_.handler({0xc6, 0x06, 0x00, 0x00, 0x07, 0xcf});  // mov byte [0],7; iret
  guest_.interrupt_at({120, 0});
  guest_.interrupt_at({301, 0});
  const PlacementReport report = place(310);
  expect_all(report, Placement::unique);
  expect_where_it_was(report);
  expect_match();
}

TEST_F(EventPlacerTest, RoundsOfAnIdleLoopAreEquivalent) {
  guest_.code({0xeb, 0xfe});  // jmp $
  guest_.handler({0xc6, 0x06, 0x00, 0x00, 0x07, 0xcf});
  guest_.interrupt_at({50, 0});
  guest_.interrupt_at({90, 0});
  const PlacementReport report = place(93);
  expect_all(report, Placement::equivalent);
  for (const PlacedEvent& e : report.events) {
    EXPECT_TRUE(e.more);
    EXPECT_GT(e.candidates, 1u);
  }
  expect_match();
}

TEST_F(EventPlacerTest, RoundsThatLeadToTheSameStateAreEquivalent) {
  // mov cx,30; loop $; mov byte [10],1; jmp $
  guest_.code({0xb9, 0x1e, 0x00, 0xe2, 0xfe, 0xc6, 0x06, 0x10, 0x00, 0x01, 0xeb, 0xfe});
  guest_.handler({0xc6, 0x06, 0x00, 0x00, 0x07, 0xcf});
  guest_.interrupt_at({12, 0});
  const PlacementReport report = place(40);
  expect_all(report, Placement::equivalent);
  EXPECT_EQ(report.events[0].candidates, 30u);
  EXPECT_FALSE(report.events[0].more);
  expect_match();
}

TEST_F(EventPlacerTest, RoundsThatNothingTellsApartAreAmbiguous) {
  guest_.code({0xb9, 0x1e, 0x00, 0x43, 0xe2, 0xfd, 0xb0, 0x01});  // mov cx,30; L: inc bx; loop L
  guest_.handler({0xc6, 0x06, 0x00, 0x00, 0x07, 0x43, 0xcf});     // mov byte [0],7; inc bx; iret
  guest_.interrupt_at({13, 0});
  const PlacementReport report = place(16);  // ends in the handler
  expect_all(report, Placement::ambiguous);
  // BX was 6, and PF and AF of that were pushed: the other numbers from 1 to 29 with an even
  // number of ones and a carry out of bit 3 alike are 3, 5, 9, 10, 12, 15, 17, 18, 20, 23, 24, 27
  // and 29.
  EXPECT_EQ(report.events[0].candidates, 14u);
  EXPECT_EQ(report.events[0].others.size(), 13u);
  expect_match();
}

TEST_F(EventPlacerTest, AnInterruptBetweenIterationsIsPlacedThere) {
  guest_.set("ecx", 60);
  guest_.set("eax", 0x5a);
  guest_.code({0xf3, 0xaa, 0xeb, 0xfe});  // rep stosb; jmp $
  guest_.handler({0xcf});
  guest_.interrupt_at({0, 17});
  const PlacementReport report = place(5);
  expect_all(report, Placement::unique);
  expect_where_it_was(report);
  expect_match();
}

TEST_F(EventPlacerTest, NoPlaceIsFoundWhereInterruptsAreDisabled) {
  guest_.code({0x40, 0x43, 0xfb, 0x41, 0x42, 0xa3, 0x10, 0x00});  // inc; inc; sti; inc; inc; mov
  guest_.handler({0xcf});
  guest_.interrupt_at({2, 0});
  imported_ = guest_.record(7);
  set_register(imported_.recording.initial, "eflags", 0xf002);
  const PlacementReport report = place_interrupts(imported_);
  ASSERT_EQ(report.events.size(), 1u);
  EXPECT_EQ(report.events[0].placement, Placement::none);
  EXPECT_TRUE(report.divergence);
  EXPECT_FALSE(imported_.recording.interrupts[0].position_known);
}

TEST_F(EventPlacerTest, InterruptsAfterOneThatFitsNowhereStayUnplaced) {
  guest_.code({0x40, 0x43, 0x41, 0x42, 0xa3, 0x10, 0x00, 0x40, 0x40, 0xa3, 0x12, 0x00});
  guest_.handler({0xcf});
  guest_.interrupt_at({2, 0});
  guest_.interrupt_at({7, 0});
  imported_ = guest_.record(10);
  // The return address that the first one pushed, at 2000:00FA, is now no instruction's.
  for (BusTransaction& t : imported_.evidence) {
    if (t.op == BusOp::data_write && t.address.value == 0x200fa) {
      t.data[0] = 0x77;
      break;
    }
  }
  const PlacementReport report = place_interrupts(imported_);
  ASSERT_EQ(report.events.size(), 2u);
  EXPECT_EQ(report.count(Placement::none), 2u);
  EXPECT_TRUE(report.divergence);
}

TEST_F(EventPlacerTest, TrafficMuchLaterDecides) {
  // The round decides over BX, which nothing shows until it is stored 70000 bytes later.
  guest_.put(0x1000, {0xb9, 0x0a, 0x00,                      // mov cx,10
                      0x43, 0xe2, 0xfd,                      // L: inc bx; loop L
                      0xb9, 0x00, 0xff, 0xbf, 0x00, 0x10,    // mov cx,ff00; mov di,1000
                      0xf3, 0xaa,                            // rep stosb
                      0xb9, 0x00, 0xff, 0xbf, 0x00, 0x10,    // again
                      0xf3, 0xaa,                            //
                      0x89, 0x1e, 0x00, 0x00, 0xeb, 0xfe});  // mov [0],bx; jmp $
  guest_.handler({0x01, 0xcb, 0xcf});                        // add bx,cx; iret
  guest_.interrupt_at({11, 0});
  const PlacementReport report = place(31);
  expect_all(report, Placement::unique);
  expect_where_it_was(report);
  expect_match();
}

TEST_F(EventPlacerTest, AChoiceIsRevisedWhenTrafficAfterTheNextInterruptRefutesIt) {
  guest_.code({0xb9, 0x0a, 0x00,                          // mov cx,10
               0x43, 0xe2, 0xfd,                          // L: inc bx; loop L
               0x90, 0x90, 0xa2, 0x10, 0x00, 0x90, 0x90,  // nop; nop; mov [10],al; nop; nop
               0x89, 0x1e, 0x00, 0x00, 0xeb, 0xfe});      // mov [0],bx; jmp $
  guest_.handler({0x01, 0xcb, 0xcf});                     // add bx,cx; iret
  guest_.interrupt_at({11, 0});
  guest_.interrupt_at({27, 0});
  const PlacementReport report = place(32);
  ASSERT_EQ(report.events.size(), 2u);
  expect_where_it_was(report);
  EXPECT_EQ(report.events[1].placement, Placement::unique);
  expect_match();
}

// mov al,60; out 20,al; iret
constexpr std::initializer_list<int> kEndOfInterrupt{0xb0, 0x60, 0xe6, 0x20, 0xcf};

TEST_F(EventPlacerTest, AMarkerShowsInterruptsThatNobodyAcknowledged) {
  guest_.code({0x40, 0x43, 0xa3, 0x10, 0x00, 0x41, 0x42,    // inc; inc; mov [10],ax; inc; inc
               0xa3, 0x12, 0x00, 0x40, 0x43, 0xeb, 0xfe});  // mov [12],ax; inc; inc; jmp $
  guest_.handler(kEndOfInterrupt);
  guest_.marker("8=io-write:20:60");
  guest_.on_chip_at({1, 0});
  guest_.on_chip_at({7, 0});
  const PlacementReport report = place(16);
  expect_all(report, Placement::unique);
  expect_where_it_was(report);
  expect_match();
}

TEST_F(EventPlacerTest, TheReadOfItsTableEntryIsAMarkerToo) {
  guest_.code({0x40, 0x43, 0xa3, 0x10, 0x00, 0x41, 0x42, 0xa3, 0x12, 0x00, 0x40, 0xeb, 0xfe});
  guest_.handler({0xcf});
  guest_.marker("8=mem-read:20");
  guest_.on_chip_at({1, 0});
  guest_.on_chip_at({5, 0});
  const PlacementReport report = place(10);
  expect_all(report, Placement::unique);
  expect_where_it_was(report);
  expect_match();
}

TEST_F(EventPlacerTest, AnInterruptBeforePushfStoresWhatPushfWould) {
  guest_.code({0x40, 0x43, 0x9c, 0x59, 0xa3, 0x10, 0x00, 0xeb, 0xfe});  // inc; inc; pushf; pop cx
  guest_.handler(kEndOfInterrupt);
  guest_.marker("8=io-write:20:60");
  guest_.on_chip_at({2, 0});
  const PlacementReport report = place(9);
  expect_all(report, Placement::unique);
  expect_where_it_was(report);
  expect_match();
}

TEST_F(EventPlacerTest, AMarkerThatTheProgramWritesItselfIsNoInterrupt) {
  guest_.code({0x40, 0xb0, 0x60, 0xe6, 0x20,                // inc ax; mov al,60; out 20,al
               0xa3, 0x10, 0x00, 0x43, 0x41,                // mov [10],ax; inc bx; inc cx
               0xa3, 0x12, 0x00, 0x42, 0x90, 0xeb, 0xfe});  // mov [12],ax; inc dx; nop; jmp $
  guest_.handler(kEndOfInterrupt);
  guest_.marker("8=io-write:20:60");
  guest_.on_chip_at({5, 0});
  const PlacementReport report = place(13);
  ASSERT_EQ(report.events.size(), 2u);
  EXPECT_FALSE(report.divergence);
  EXPECT_EQ(report.events[0].placement, Placement::absent);
  EXPECT_EQ(report.events[1].placement, Placement::unique);
  EXPECT_EQ(report.events[1].position, (Position{5, 0}));
  expect_match();
}

TEST_F(EventPlacerTest, AMarkerOfAnotherVectorPlacesNothing) {
  guest_.code({0x40, 0x43, 0xa3, 0x10, 0x00, 0x41, 0x42, 0xa3, 0x12, 0x00, 0xeb, 0xfe});
  guest_.handler(kEndOfInterrupt);
  guest_.marker("9=io-write:20:60");
  guest_.on_chip_at({1, 0});
  const PlacementReport report = place(9);
  ASSERT_EQ(report.events.size(), 1u);
  EXPECT_EQ(report.events[0].placement, Placement::none);
  EXPECT_TRUE(report.divergence);
}

TEST_F(EventPlacerTest, RoundsOfAnIdleLoopAreEquivalentForOnChipInterruptsToo) {
  guest_.code({0xeb, 0xfe});  // jmp $
  guest_.handler(kEndOfInterrupt);
  guest_.marker("8=io-write:20:60");
  guest_.on_chip_at({50, 0});
  guest_.on_chip_at({90, 0});
  const PlacementReport report = place(100);
  ASSERT_EQ(report.events.size(), 2u);
  for (const PlacedEvent& e : report.events) {
    EXPECT_NE(e.placement, Placement::none);
    EXPECT_NE(e.placement, Placement::unique);
    EXPECT_GT(e.candidates, 1u);
  }
  expect_match();
}

TEST_F(EventPlacerTest, OnChipAndAcknowledgedInterruptsAreToldApart) {
  guest_.code({0x40, 0x43, 0xa3, 0x10, 0x00, 0x41, 0x42, 0xa3, 0x12, 0x00,  //
               0x40, 0x43, 0xa3, 0x14, 0x00, 0x41, 0x42, 0xeb, 0xfe});
  guest_.handler({0xcf});
  guest_.put(0x28, {0x00, 0x00, 0x58, 0x00});         // vector 0a
  guest_.put(0x580, {0xb0, 0x61, 0xe6, 0x20, 0xcf});  // mov al,61; out 20,al; iret
  guest_.marker("a=io-write:20:61");
  guest_.interrupt_at({1, 0});
  guest_.on_chip_at({5, 0}, 0x0a);
  guest_.interrupt_at({11, 0});
  const PlacementReport report = place(16);
  expect_all(report, Placement::unique);
  expect_where_it_was(report);
  expect_match();
}

TEST_F(EventPlacerTest, AnNmiIsPlacedByWhatItPushesEvenWithInterruptsDisabled) {
  guest_.set("eflags", 0xf002);
  guest_.code({0x40, 0x43, 0xa3, 0x10, 0x00, 0x41, 0x42, 0xa3, 0x12, 0x00, 0xeb, 0xfe});
  guest_.put(0x540, {0xc6, 0x06, 0x00, 0x00, 0x07, 0xcf});  // mov byte [0],7; iret
  guest_.nmi_at({4, 0});
  const PlacementReport report = place(9);
  expect_all(report, Placement::unique);
  expect_where_it_was(report);
  expect_match();
}

TEST_F(EventPlacerTest, AnNmiIsFoundThatTheProcessorTookBehindSeveralStores) {
  guest_.code({0x40, 0xa3, 0x10, 0x00, 0x43, 0xa3, 0x12, 0x00, 0x41, 0xa3, 0x14, 0x00, 0x42,  //
               0x40, 0xa3, 0x16, 0x00, 0xeb, 0xfe});
  guest_.put(0x540, {0xc6, 0x06, 0x00, 0x00, 0x07, 0xcf});
  guest_.nmi_at({7, 0}, 5);
  const PlacementReport report = place(12);
  expect_all(report, Placement::unique);
  expect_where_it_was(report);
  expect_match();
}

TEST_F(EventPlacerTest, AnNmiWithoutACapturedPinIsPlacedByItsMarker) {
  guest_.set("eflags", 0xf002);
  guest_.code({0x40, 0x43, 0xa3, 0x10, 0x00, 0x41, 0x42, 0xa3, 0x12, 0x00, 0xeb, 0xfe});
  guest_.put(0x540, {0xcf});
  guest_.marker("2=mem-read:8");
  guest_.on_chip_at({4, 0}, 2);
  const PlacementReport report = place(8);
  expect_all(report, Placement::unique);
  expect_where_it_was(report);
  expect_match();
}

TEST_F(EventPlacerTest, AnSmiIsPlacedByTheStateThatItSaves) {
  guest_.processor(CpuModel::p6);
  guest_.set("eflags", 0x2);
  // mov cx,9; L: inc ax; loop L; mov [10],ax; jmp $
  guest_.code({0xb9, 0x09, 0x00, 0x40, 0xe2, 0xfd, 0xa3, 0x10, 0x00, 0xeb, 0xfe});
  guest_.put(0x38000, {0x0f, 0xaa});  // rsm
  guest_.smi_at({8, 0});
  const PlacementReport report = place(24);
  expect_all(report, Placement::unique);
  expect_where_it_was(report);
  expect_match();
}

TEST_F(EventPlacerTest, GivesUpWhenItsTimeIsSpentAndLeavesTheRestWithoutAPlace) {
  guest_.handler({0x50, 0x58, 0xcf});                 // push ax; pop ax; iret
  guest_.code({0x40, 0xa3, 0x10, 0x00, 0xeb, 0xfa});  // L: inc ax; mov [10h],ax; jmp L
  for (const std::uint64_t at : {100u, 300u, 500u}) guest_.interrupt_at({at, 0});
  imported_ = guest_.record(700);
  int looks = 0;
  TimeBudget time(0, TimeBudget::Counts::since_gain, [&] { return ++looks > 6; });
  PlacerOptions options;
  options.time = &time;
  const PlacementReport report = place_interrupts(imported_, options);
  EXPECT_FALSE(report.complete());
  EXPECT_NE(report.given_up, "");
  EXPECT_EQ(report.events.size(), 3u);
  EXPECT_TRUE(report.divergence);
  for (const PlacedEvent& e : report.events) {
    const Interrupt& i = imported_.recording.interrupts[e.interrupt];
    EXPECT_EQ(i.position_known, e.placement != Placement::none);
  }
}

/// A recording of the guest in an archive, whose capture shows another value stored at 3000:0010
/// than the program's.
class ReviewedArchive : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    WatchedGuest guest;
    guest.code({0xa2, 0x10, 0x00, 0x43, 0x41, 0x42, 0xa2, 0x12, 0x00});  // mov [10],al; inc; mov
    guest.handler({0xcf});
    guest.interrupt_at({2, 0});
    const ImportedRecording imported = guest.record(6);
    RecordingFileWriter archive(path("r.citcat"));
    for (BusTransaction t : imported.evidence) {
      if (t.op == BusOp::data_write && t.address.value == 0x30010) {
        t.data[0] = 0x77;
        shown_ = t;
      }
      archive.write(t);
    }
    archive.finish(imported.recording);
  }
  BusTransaction shown_;
};

TEST_F(ReviewedArchive, SearchesOnBehindAResultThatSomebodyReviewed) {
  RecordingFile file = RecordingFile::open(path("r.citcat"));
  Hint hint;
  hint.kind = Hint::Kind::result;
  hint.transaction = shown_.index;
  hint.address = shown_.address;
  hint.data = {0x77};
  file.apply({"", {hint}}, "hints");
  const auto report = place_events(file, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->count(Placement::unique), 1u);
  EXPECT_EQ(file.recording().interrupts.at(0).position, (Position{2, 0}));
}

TEST_F(ReviewedArchive, StopsBeforeAResultThatNobodyReviewed) {
  RecordingFile file = RecordingFile::open(path("r.citcat"));
  const auto report = place_events(file, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->count(Placement::none), 1u);
  ASSERT_TRUE(report->divergence);
  EXPECT_EQ(report->divergence->transaction, shown_.index);
}

// Captures that count something else than instructions.

class CountedPlacerTest : public EventPlacerTest {
 protected:
  /// The interrupts as a monitor shows them that counted so many of `unit` before each.
  PlacementReport place_counted(std::uint64_t instructions, CountUnit unit,
                                const std::vector<std::uint64_t>& counts, bool from_start = true) {
    imported_ = guest_.record(instructions);
    std::vector<Interrupt>& interrupts = imported_.recording.interrupts;
    EXPECT_EQ(interrupts.size(), counts.size());
    for (std::size_t i = 0; i < counts.size(); ++i) {
      interrupts[i].count = EventCount{unit, counts[i], from_start};
    }
    return place_interrupts(imported_);
  }
};

TEST_F(CountedPlacerTest, TakenBranchesNameTheRoundOfALoopThatNothingElseTellsApart) {
  guest_.code({0xb9, 0x1e, 0x00, 0x43, 0xe2, 0xfd, 0xb0, 0x01});  // mov cx,30; L: inc bx; loop L
  guest_.handler({0xc6, 0x06, 0x00, 0x00, 0x07, 0x43, 0xcf});     // mov byte [0],7; inc bx; iret
  guest_.interrupt_at({13, 0});                                   // after MOV and six rounds
  const PlacementReport report = place_counted(16, CountUnit::branches, {6});
  expect_all(report, Placement::unique);
  expect_where_it_was(report);
  expect_match();
}

TEST_F(CountedPlacerTest, BranchesThatAreNotTakenEndBlocksOnly) {
  // mov cx,30; L: cmp cx,0; jz $+2 past; inc bx; loop L; jmp $
  guest_.code({0xb9, 0x1e, 0x00, 0x83, 0xf9, 0x00, 0x74, 0x03, 0x43, 0xe2, 0xf8, 0xeb, 0xfe});
  guest_.handler({0xc6, 0x06, 0x00, 0x00, 0x07, 0x43, 0xcf});
  guest_.interrupt_at({21, 0});  // mov and five rounds of cmp, jz, inc, loop
  const PlacementReport blocks = place_counted(24, CountUnit::blocks, {10});
  expect_all(blocks, Placement::unique);
  expect_where_it_was(blocks);
  const PlacementReport branches = place_counted(24, CountUnit::branches, {5});
  expect_all(branches, Placement::unique);
  expect_where_it_was(branches);
  expect_match();
}

TEST_F(CountedPlacerTest, CountsNameTheRoundOfAnIdleLoopHoweverManyThereAre) {
  guest_.code({0xeb, 0xfe});  // jmp $
  guest_.handler({0xc6, 0x06, 0x00, 0x00, 0x07, 0xcf});
  guest_.interrupt_at({50, 0});
  guest_.interrupt_at({5090, 0});
  // The handler's IRET is a branch, its MOV is none.
  for (const auto& [unit, counts] :
       {std::pair{CountUnit::branches, std::vector<std::uint64_t>{50, 5089}},
        std::pair{CountUnit::completions, std::vector<std::uint64_t>{50, 5091}}}) {
    const PlacementReport report = place_counted(5093, unit, counts);
    ASSERT_EQ(report.events.size(), 2u);
    EXPECT_EQ(report.events[0].position, guest_.positions()[0]) << count_unit_name(unit);
    if (unit == CountUnit::branches) {
      expect_all(report, Placement::unique);
      expect_where_it_was(report);
    } else {
      // The delivery may have been counted as one, or not: two rounds are left, and the first is
      // taken.
      EXPECT_STREQ(placement_name(report.events[1].placement), "equivalent");
      EXPECT_EQ(report.events[1].candidates, 2u);
      EXPECT_EQ(report.events[1].others, std::vector{Position({5091, 0})});
    }
    expect_match();
  }
}

TEST_F(CountedPlacerTest, CountsFromAnUnknownInstantTellHowFarOneInterruptIsFromTheNext) {
  guest_.code({0xeb, 0xfe});  // jmp $
  guest_.handler({0xc6, 0x06, 0x00, 0x00, 0x07, 0xcf});
  guest_.interrupt_at({3, 0});
  guest_.interrupt_at({90, 0});
  const PlacementReport report = place_counted(93, CountUnit::branches, {1003, 1089}, false);
  ASSERT_EQ(report.events.size(), 2u);
  const Position first = report.events[0].position, second = report.events[1].position;
  EXPECT_STREQ(placement_name(report.events[0].placement), "equivalent");
  EXPECT_EQ(second.instruction - first.instruction, 87u);
  EXPECT_STREQ(placement_name(report.events[1].placement), "unique");
}

TEST_F(CountedPlacerTest, IterationsOfARepMayHaveBeenCountedOrNot) {
  for (const std::uint64_t counted : {5u, 5u + 60u}) {
    guest_ = WatchedGuest();
    guest_.set("ecx", 60);
    // rep lodsb; L: inc bx; jmp L
    guest_.code({0xf3, 0xac, 0x43, 0xeb, 0xfd});
    guest_.handler({0xc6, 0x06, 0x00, 0x00, 0x07, 0x43, 0xcf});
    guest_.interrupt_at({5, 0});
    const PlacementReport report = place_counted(8, CountUnit::completions, {counted});
    ASSERT_EQ(report.events.size(), 1u);
    const PlacedEvent& e = report.events[0];
    const bool listed =
        e.position == guest_.positions()[0] ||
        std::find(e.others.begin(), e.others.end(), guest_.positions()[0]) != e.others.end();
    EXPECT_TRUE(listed) << counted;
  }
}

TEST_F(CountedPlacerTest, ACountThatNoBoundaryHasIsADivergenceThatNamesIt) {
  guest_.code({0x40, 0x43, 0x41, 0x42, 0xa3, 0x10, 0x00, 0xf4});  // inc ×4, mov [10],ax, hlt
  guest_.handler({0xcf});
  guest_.interrupt_at({2, 0});
  const PlacementReport report = place_counted(6, CountUnit::branches, {3});
  ASSERT_TRUE(report.divergence);
  EXPECT_NE(report.divergence->expected.find("where 3 branches are counted"), std::string::npos)
      << report.divergence->expected;
  EXPECT_EQ(report.count(Placement::none), 1u);
}

}  // namespace
}  // namespace citcat::test
