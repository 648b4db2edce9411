// What one memory allows several processors to see.

#include "events/processors/cross_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "events/processors/bus_flags.h"

namespace citcat::test {
namespace {

constexpr PhysAddr kLineAt{0x1000};

/// A bus on which two processors do one thing after the other.
class CrossChecks : public ::testing::Test {
 protected:
  void memory(std::uint8_t processor, BusOp op, PhysAddr address, std::vector<std::uint8_t> bytes,
              unsigned flags = 0, std::optional<std::size_t> external = std::nullopt) {
    SharedEvent event;
    event.processor = processor;
    event.t.op = op;
    event.t.address = address;
    event.t.size = static_cast<std::uint8_t>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), event.t.data.begin());
    event.t.flags = static_cast<std::uint16_t>(flags);
    event.t.index = ++index_;
    event.external = external;
    if (external) event.changed.set();
    check_.take(event);
  }
  void read(std::uint8_t processor, std::vector<std::uint8_t> bytes,
            std::optional<std::size_t> external = std::nullopt) {
    memory(processor, BusOp::data_read, kLineAt, std::move(bytes), 0, external);
  }
  void write(std::uint8_t processor, std::vector<std::uint8_t> bytes) {
    memory(processor, BusOp::data_write, kLineAt, std::move(bytes));
  }
  void fill(std::uint8_t processor, unsigned flags) {
    memory(processor, BusOp::data_read, kLineAt, std::vector<std::uint8_t>(16), kLine | flags);
    memory(processor, BusOp::data_read, kLineAt.plus32(16), std::vector<std::uint8_t>(16),
           kLine | flags);
  }
  void write_back(std::uint8_t processor, unsigned flags) {
    memory(processor, BusOp::data_write, kLineAt, std::vector<std::uint8_t>(16),
           kLine | kWriteBack | flags);
    memory(processor, BusOp::data_write, kLineAt.plus32(16), std::vector<std::uint8_t>(16),
           kLine | kWriteBack | flags);
  }
  void invalidate(std::uint8_t processor) {
    SharedEvent event;
    event.processor = processor;
    event.note = BusNote{BusNote::Kind::invalidate, processor, false, false, 0, index_, kLineAt, 0};
    check_.take(event);
  }
  /// 1 INVD, 2 WBINVD.
  void flush(std::uint8_t processor, std::uint8_t which) {
    memory(processor, BusOp::flush, PhysAddr{0}, {which});
  }
  std::string reason() {
    check_.finish();
    const auto& first = check_.result().first;
    return first ? first->reason : "";
  }

  CrossCheck check_{{0, 1}, 0x100000, true, 32};
  std::uint64_t index_ = 0;
};

TEST_F(CrossChecks, AValueThatTheOtherWroteIsTheOthers) {
  read(0, {1, 2});
  write(1, {3});
  read(0, {3, 2}, 0);
  EXPECT_EQ(reason(), "");
  EXPECT_EQ(check_.result().from_others, 1u);
  EXPECT_EQ(check_.from_others()[0], std::vector<std::size_t>{0});
}

TEST_F(CrossChecks, AValueThatNobodyWroteIsNamedWithWhoWroteLast) {
  write(1, {3});
  write(0, {4});
  read(1, {5}, 0);
  EXPECT_NE(reason().find("nobody wrote"), std::string::npos);
  const CrossCheckResult& result = check_.result();
  EXPECT_EQ(result.unexplained, 1u);
  EXPECT_EQ(result.first->processor, 1);
  EXPECT_EQ(result.first->t.index, 3u);
  EXPECT_EQ(result.first->expected,
            "04 at 00001000, as processor 0 wrote it last, by its transaction 2");
  EXPECT_EQ(result.first->found, "05");
}

TEST_F(CrossChecks, AFirstReadMustShowWhatTheOtherHasRead) {
  read(0, {1});
  read(1, {2});
  EXPECT_NE(reason().find("nobody wrote"), std::string::npos);
  EXPECT_EQ(check_.result().first->expected,
            "01 at 00001000, as it was first read; nobody has written it");
}

TEST_F(CrossChecks, AnOldValueIsNoLongerTheOthers) {
  write(0, {1});
  write(0, {2});
  read(1, {1});
  EXPECT_NE(reason(), "");
}

/// The import takes a count away that does not fit its neighbours'.
TEST_F(CrossChecks, AnAccessWithoutACountAmongOthersMayBeAnotherProcessors) {
  for (const unsigned counted : {0u, 1u}) {
    memory(0, BusOp::data_read, kLineAt, {1}, counted != 0 ? kPositionKnown : 0);
    memory(1, BusOp::data_read, kLineAt, {1}, 0);
  }
  EXPECT_EQ(reason().find("its count of instructions does not fit"), 0u) << reason();
  EXPECT_EQ(check_.result().first->t.index, 1u);
  EXPECT_EQ(check_.result().contradictions, 1u) << "processor 1 has no counts at all";
}

/// The lower halves of the addresses are the same.
TEST_F(CrossChecks, MemoryBeyond4GiBIsNotThatBelow) {
  constexpr PhysAddr kFar{0x1'0000'1000}, kFarther{0x2'0000'1000};
  constexpr PhysAddr kDevicesBelow{0xfee01000}, kLikeDevices{0x1'fee0'1000};
  read(0, {1});
  memory(1, BusOp::data_write, kFar, {2});
  memory(1, BusOp::data_write, kFarther, {3});
  memory(0, BusOp::data_read, kFar, {2}, 0, 0);
  memory(0, BusOp::data_read, kFarther, {3}, 0, 1);
  read(1, {1});
  memory(0, BusOp::data_read, kDevicesBelow, {1});
  memory(1, BusOp::data_read, kDevicesBelow, {2});
  memory(0, BusOp::data_read, kLikeDevices, {4});
  EXPECT_EQ(reason(), "");
  EXPECT_EQ(check_.result().from_others, 2u);
  memory(1, BusOp::data_read, kLikeDevices, {5});
  EXPECT_NE(reason().find("nobody wrote"), std::string::npos);
  EXPECT_EQ(check_.result().first->expected,
            "04 at 1fee01000, as it was first read; nobody has written it");
}

TEST_F(CrossChecks, LinesBeyond4GiBAreNotThoseBelow) {
  constexpr PhysAddr kFar{0x1'0000'1000};
  const auto fill_far = [&](std::uint8_t processor, unsigned flags) {
    for (const std::uint32_t part : {0u, 16u}) {
      memory(processor, BusOp::data_read, kFar.plus32(part), std::vector<std::uint8_t>(16),
             kLine | flags);
    }
  };
  fill(0, kStoreFill);
  fill_far(1, 0);  // the other one's line has nothing to do with it
  EXPECT_EQ(reason(), "");
}

TEST_F(CrossChecks, ALockedOperandInTwoPartsIsOneAccess) {
  constexpr PhysAddr kLow{0x2ffe}, kHigh{0x3000}, kElsewhere{0x4000};
  const auto access = [&](BusOp op, PhysAddr at) { memory(0, op, at, {1, 2}, kLocked); };
  for (const PhysAddr at : {kLow, kHigh}) access(BusOp::data_read, at);
  for (const PhysAddr at : {kLow, kHigh}) access(BusOp::data_write, at);
  memory(1, BusOp::data_read, kElsewhere, {7});
  EXPECT_EQ(check_.result().contradictions, 0u);
  for (const PhysAddr at : {kLow, kHigh}) access(BusOp::data_read, at);
  access(BusOp::data_write, kLow);
  memory(1, BusOp::data_read, kElsewhere, {7});
  EXPECT_NE(reason().find("locked"), std::string::npos);
}

TEST_F(CrossChecks, LinesAreAsLongAsTheCachesOfTheMachineHaveThem) {
  for (const std::uint32_t line_bytes : {16u, 32u, 64u}) {
    LineOwners owners(2, line_bytes);
    BusTransaction fill;
    fill.op = BusOp::data_read;
    fill.size = 16;
    fill.flags = kLine | kStoreFill;
    const PhysAddr first{0x1000}, next = first.plus32(line_bytes);
    fill.address = first;
    EXPECT_EQ(owners.take(0, fill), "");
    EXPECT_EQ(owners.owner(first.plus32(line_bytes - 1)), 0) << line_bytes;
    EXPECT_EQ(owners.owner(next), std::nullopt) << line_bytes;
    fill.address = next;
    EXPECT_EQ(owners.take(1, fill), "");
    EXPECT_EQ(owners.owner(next), 1) << line_bytes;
    EXPECT_NE(owners.invalidate(0, next), "");
  }
}

TEST_F(CrossChecks, NobodyElseHasALockedBus) {
  constexpr PhysAddr kLock{0x2000}, kElsewhere{0x3000};
  memory(0, BusOp::data_read, kLock, {0}, kLocked);
  memory(0, BusOp::data_write, kLock, {1}, kLocked);
  memory(1, BusOp::data_read, kElsewhere, {7});
  EXPECT_EQ(check_.result().contradictions, 0u);
  memory(1, BusOp::data_read, kLock, {1}, kLocked);
  memory(0, BusOp::data_read, kElsewhere, {7});
  EXPECT_NE(reason().find("while processor 1 has it locked"), std::string::npos) << reason();
}

/// Accesses to local APICs. Register numbers and command bits are from the Intel SDM, vol.
/// 3, 10.4.1 and 10.6.1.
class ApicChecks : public CrossChecks {
 protected:
  void set(std::uint8_t processor, std::uint32_t number, std::uint32_t value) {
    std::vector<std::uint8_t> bytes(4);
    for (unsigned i = 0; i < 4; ++i) bytes[i] = static_cast<std::uint8_t>(value >> (8 * i));
    memory(processor, BusOp::data_write, PhysAddr{0xfee00000 + number}, bytes, kUncacheable);
  }
  void command(std::uint8_t processor, std::uint8_t destination, std::uint32_t low) {
    set(processor, 0x310, std::uint32_t{destination} << 24);
    set(processor, 0x300, low);
  }
  void message(std::uint8_t processor, std::uint8_t vector, std::uint8_t mode,
               std::uint8_t destination, std::uint8_t details) {
    SharedEvent event;
    event.processor = processor;
    event.note = BusNote{BusNote::Kind::message, processor, false, false, 4, index_, PhysAddr{}, 0};
    event.note->data = vector | mode << 8 | destination << 16 | unsigned{details} << 24;
    check_.take(event);
  }
  void take(std::uint8_t processor, std::uint8_t vector) {
    SharedEvent event;
    event.processor = processor;
    event.t.op = BusOp::interrupt_acknowledge;
    event.t.size = 1;
    event.t.data[0] = vector;
    event.t.flags = kOfLocalApic;
    event.t.index = ++index_;
    check_.take(event);
  }
  void enable(std::uint8_t processor, std::uint8_t timer) {
    set(processor, 0xf0, 0x1ff);
    set(processor, 0x320, timer);
  }
  static constexpr std::uint32_t kAssert = 0x4000, kLogical = 0x800;
};

TEST_F(ApicChecks, AMessageIsTheOneThatACommandAsksFor) {
  command(0, 1, 0x41 | kAssert);
  message(0, 0x41, 0, 1, 2);
  command(0, 1, 0x600 | kAssert);
  message(0, 0, 6, 1, 2);
  EXPECT_EQ(reason(), "");
  command(0, 1, 0x41 | kAssert);
  message(0, 0x42, 0, 1, 2);
  EXPECT_NE(reason().find("asks for: vector 41, mode 0, destination 01"), std::string::npos)
      << reason();
}

/// The ID of an APIC need not be the number of its processor.
TEST_F(ApicChecks, AMessageGoesToAnId) {
  for (const auto& [destination, is_sent] : {std::pair{4, true}, std::pair{1, false}}) {
    check_ = CrossCheck{{0, 4}, 0x100000, true, 32};
    enable(0, 0xec);
    enable(1, 0xec);
    command(0, static_cast<std::uint8_t>(destination), 0x41 | kAssert);
    message(0, 0x41, 0, static_cast<std::uint8_t>(destination), 2);
    take(1, 0x41);
    EXPECT_EQ(check_.result().clean(), is_sent) << destination;
  }
}

/// Some registers only their processor changes; others change by themselves.
TEST_F(ApicChecks, ARegisterIsReadAsItWas) {
  const auto read_register = [&](std::uint8_t processor, std::uint32_t number,
                                 std::uint32_t value) {
    std::vector<std::uint8_t> bytes(4);
    for (unsigned i = 0; i < 4; ++i) bytes[i] = static_cast<std::uint8_t>(value >> (8 * i));
    memory(processor, BusOp::data_read, PhysAddr{0xfee00000 + number}, bytes, kUncacheable);
  };
  constexpr std::uint32_t kId = 0x20, kCommand = 0x300, kCurrentCount = 0x390, kPending = 0x1000;
  read_register(0, kId, 0x1000000);
  read_register(1, kId, 0x2000000);
  read_register(0, kId, 0x1000000);
  read_register(0, kCurrentCount, 5);
  read_register(0, kCurrentCount, 4);
  command(0, 1, 0x41 | kAssert);
  read_register(0, kCommand, 0x41 | kAssert | kPending);
  message(0, 0x41, 0, 1, 2);
  EXPECT_EQ(reason(), "");
  read_register(0, kCommand, 0x43 | kAssert);
  EXPECT_NE(reason().find("register 300 of the local APIC is read as 00004043"), std::string::npos)
      << reason();
  EXPECT_EQ(check_.result().contradictions, 1u);
  read_register(0, kId, 0x3000000);
  EXPECT_EQ(check_.result().contradictions, 2u);
}

TEST_F(ApicChecks, AnotherDestinationOrModeIsNoticed) {
  for (const auto& [mode, destination] : {std::pair{0, 2}, std::pair{4, 1}}) {
    check_ = CrossCheck{{0, 1}, 0x100000, true, 32};
    command(0, 1, 0x41 | kAssert);
    message(0, 0x41, static_cast<std::uint8_t>(mode), static_cast<std::uint8_t>(destination), 2);
    EXPECT_EQ(check_.result().contradictions, 1u) << mode;
  }
}

/// Shown twice, or to others where it was for its sender, or by another sender.
TEST_F(ApicChecks, EachMessageIsAskedForOnce) {
  constexpr std::uint32_t kToItself = 0x40000;
  const std::vector<std::function<void()>> all{[&] { message(0, 0x41, 0, 1, 2); },
                                               [&] {
                                                 command(0, 1, 0x42 | kAssert | kToItself);
                                                 message(0, 0x42, 0, 1, 2);
                                               },
                                               [&] { message(1, 0x42, 0, 1, 2 | 1 << 4); }};
  for (const auto& wrong : all) {
    check_ = CrossCheck{{0, 1}, 0x100000, true, 32};
    command(0, 1, 0x41 | kAssert);
    message(0, 0x41, 0, 1, 2);
    wrong();
    EXPECT_EQ(check_.result().contradictions, 0u) << "it might be by an MSR";
    for (const std::uint8_t p : {std::uint8_t{0}, std::uint8_t{1}}) set(p, 0xb0, 0);
    EXPECT_EQ(check_.result().contradictions, 1u);
    EXPECT_NE(reason().find("does not ask for"), std::string::npos) << reason();
  }
}

TEST_F(ApicChecks, AMessageThatIsMissingIsNoticedAtTheEnd) {
  command(0, 1, 0x41 | kAssert);
  for (int i = 0; i < 100; ++i) read(0, {1});
  EXPECT_NE(reason().find("shows no message"), std::string::npos) << reason();
  EXPECT_EQ(check_.result().first->expected.find("vector 41"), 0u);
  EXPECT_EQ(check_.result().first->t.address.value, 0xfee00300u);
}

TEST_F(ApicChecks, NeitherOneToItselfNorTheEndOfALevelNeedBeShown) {
  constexpr std::uint32_t kToItself = 0x40000, kInitMode = 0x500, kOfLevel = 0x8000;
  command(0, 1, 0x41 | kAssert | kToItself);
  command(0, 1, kInitMode | kOfLevel);
  command(0, 1, 0x42 | kAssert);
  message(0, 0x42, 0, 1, 2);
  for (int i = 0; i < 100; ++i) read(0, {1});
  EXPECT_EQ(reason(), "");
}

TEST_F(ApicChecks, TheHighestThatWaitsComesFirst) {
  enable(1, 0x30);
  message(kNoProcessor, 0x51, 0, 1, 0);
  message(kNoProcessor, 0x61, 0, 1, 0);
  take(1, 0x61);
  take(1, 0x51);
  EXPECT_EQ(reason(), "");
  message(kNoProcessor, 0x61, 0, 1, 0);
  take(1, 0x30);
  EXPECT_NE(reason().find("30 is taken while 61"), std::string::npos) << reason();
}

TEST_F(ApicChecks, WhatIsSentToOneOfManyNeedNotCome) {
  enable(1, 0x30);
  message(kNoProcessor, 0x61, 1, 0xff, 1);
  take(1, 0x30);
  EXPECT_EQ(reason(), "");
}

/// Who writes its registers as MSRs (x2APIC) hides what it asks for, and what it takes.
TEST_F(ApicChecks, RegistersThatAreMsrsAreNotKnown) {
  command(0, 1, 0x600 | kAssert);
  message(0, 0, 6, 1, 2);
  enable(1, 0x30);
  message(0, 0x61, 0, 1, 2);
  take(1, 0x30);
  take(1, 0x61);
  take(1, 0x61);
  EXPECT_EQ(reason(), "");
}

TEST_F(ApicChecks, AnInterruptThatOthersSendIsSent) {
  enable(1, 0x30);
  take(1, 0x30);
  take(1, 0x77);  // of an adapter that the capture does not tell
  message(kNoProcessor, 0x61, 0, 0, 0);
  EXPECT_EQ(check_.result().contradictions, 0u);
  take(1, 0x61);
  EXPECT_NE(reason().find("nobody has sent it"), std::string::npos) << reason();
}

TEST_F(CrossChecks, DevicesMayShowAnything) {
  memory(0, BusOp::data_read, PhysAddr{0xb8000}, {1});
  memory(0, BusOp::data_read, PhysAddr{0xb8000}, {2}, 0, 0);
  memory(1, BusOp::data_read, PhysAddr{0xfee00020}, {3}, kUncacheable);
  memory(1, BusOp::data_read, PhysAddr{0xfee00020}, {4}, kUncacheable, 0);
  EXPECT_EQ(reason(), "");
  EXPECT_EQ(check_.result().from_devices, 2u);
}

TEST_F(CrossChecks, AmongFirmwareTheOthersValueIsTold) {
  constexpr PhysAddr kLock{0xf4a80};
  memory(0, BusOp::data_write, kLock, {1, 0}, kUncacheable);
  memory(1, BusOp::data_write, kLock, {0, 0}, kUncacheable);
  memory(0, BusOp::data_read, kLock, {0, 0}, kUncacheable, 0);  // what the other wrote
  memory(0, BusOp::data_write, kLock, {1, 0}, kUncacheable);
  memory(0, BusOp::data_read, kLock, {0, 0}, kUncacheable, 1);  // what nobody wrote
  memory(1, BusOp::data_write, kLock, {2, 0}, kUncacheable);
  memory(0, BusOp::data_read, kLock, {3, 0}, kUncacheable, 2);  // another value than that
  EXPECT_EQ(reason(), "");
  EXPECT_EQ(check_.result().from_devices, 3u);
  EXPECT_EQ(check_.from_others()[0], std::vector<std::size_t>{});
  EXPECT_EQ(check_.told_by_others()[0], std::vector<std::size_t>{0});
}

TEST_F(CrossChecks, ADeviceThatTheCaptureHasWritesMemory) {
  read(0, {1});
  SharedEvent event;
  event.processor = kNoProcessor - 1;
  event.note =
      BusNote{BusNote::Kind::device_write, kNoProcessor - 1, false, false, 1, 0, kLineAt, 9};
  check_.take(event);
  read(0, {9}, 0);
  write(1, {8});
  read(0, {8}, 1);
  EXPECT_EQ(reason(), "");
  EXPECT_EQ(check_.result().from_devices, 1u);
  EXPECT_EQ(check_.result().from_others, 1u);
  // Both follow from what the bus shows.
  EXPECT_EQ(check_.from_others()[0], (std::vector<std::size_t>{0, 1}));
}

TEST_F(CrossChecks, LinesGoFromOneToTheOther) {
  fill(0, 0);             // its own alone, which it may change
  write_back(0, kSnoop);  // for the other
  fill(1, kSharedFill);   // both have it
  invalidate(1);          // the other's own
  write_back(1, kSnoop);
  fill(0, kStoreFill);
  write_back(0, 0);
  EXPECT_EQ(reason(), "");
  EXPECT_EQ(check_.result().invalidations, 1u);
}

TEST_F(CrossChecks, AnInvalidationThatIsMissingShowsWhenTheLineIsWrittenBack) {
  fill(0, 0);
  fill(1, kSharedFill);
  write_back(1, kSnoop);
  EXPECT_NE(reason().find("an invalidation is missing"), std::string::npos);
}

TEST_F(CrossChecks, AFillBeforeTheOtherWroteItsLineBackIsWrong) {
  fill(0, kStoreFill);
  fill(1, kSharedFill);
  EXPECT_NE(reason().find("has modified, and has not written back"), std::string::npos);
}

TEST_F(CrossChecks, ALineIsSharedOnlyWithWhoMayHaveIt) {
  fill(0, kSharedFill);
  EXPECT_NE(reason().find("no other processor can have"), std::string::npos);
}

TEST_F(CrossChecks, ALineThatItDoesNotHaveIsNotItsOwn) {
  fill(0, 0);
  invalidate(1);
  EXPECT_NE(reason().find("cannot have"), std::string::npos);
}

/// Intel SDM vol. 2, WBINVD.
TEST_F(CrossChecks, AFlushWritesBackWhatItsProcessorHasModified) {
  constexpr std::uint8_t kWbinvd = 2;
  fill(0, kStoreFill);
  write_back(0, 0);
  fill(0, 0);
  fill(1, kSharedFill);
  flush(0, kWbinvd);
  EXPECT_EQ(check_.owner(kLineAt), std::nullopt);
  fill(0, kSharedFill);  // processor 1 still has it
  invalidate(0);
  EXPECT_EQ(check_.result().contradictions, 0u);
  flush(1, kWbinvd);
  EXPECT_EQ(check_.owner(kLineAt), std::optional<std::uint8_t>(0));
  flush(0, kWbinvd);
  EXPECT_NE(reason().find("WBINVD does not write a line back"), std::string::npos);
  EXPECT_EQ(check_.result().first->t.address, kLineAt);
}

TEST_F(CrossChecks, AFlushMayThrowAwayWhatItsProcessorHasModified) {
  constexpr std::uint8_t kInvd = 1;
  fill(0, kStoreFill);
  flush(0, kInvd);
  fill(1, 0);
  EXPECT_EQ(reason(), "");
}

TEST_F(CrossChecks, WhoMayHaveChangedALineIsKnown) {
  fill(0, 0);
  EXPECT_EQ(check_.owner(kLineAt), std::optional<std::uint8_t>(0));
  fill(1, kSharedFill);
  EXPECT_EQ(check_.owner(kLineAt), std::nullopt);
  invalidate(1);
  EXPECT_EQ(check_.owner(kLineAt.plus32(31)), std::optional<std::uint8_t>(1));
}

}  // namespace
}  // namespace citcat::test
