// Page walks on the bus: what is read and written of the tables, and when.

#include "monitor/walk/page_walker.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "monitor/bus/bus_model.h"
#include "tests/monitor/bus_test_fixture.h"

namespace citcat::monitor {
namespace {

/// A page directory, and a table that its entries may name.
class PageWalkTest : public BusTest {
 protected:
  static constexpr std::uint32_t kDirectory = 0x300000, kTable = 0x301000;

  static std::uint32_t directory_at(std::uint32_t linear) {
    return kDirectory + 4 * (linear >> 22);
  }
  static std::uint32_t table_at(std::uint32_t linear) {
    return kTable + 4 * ((linear >> 12) & 0x3ff);
  }
  void entry(std::uint32_t at, std::uint32_t value) { std::memcpy(ram_ + at, &value, 4); }
  void wide_entry(std::uint32_t at, std::uint64_t value) { std::memcpy(ram_ + at, &value, 8); }
  /// What stands in memory is what the bus has shown so far.
  void prepare(CacheModel model = CacheModel::none) {
    ASSERT_TRUE(memory_.snapshot());
    bus_.emplace(memory_, *sink_, model);
    walker_.emplace(memory_, *bus_);
    bus_->clear();
  }
  void start(std::uint32_t cr0, std::uint32_t cr4, CacheModel model = CacheModel::none) {
    prepare(model);
    walker_->set_control({cr0, kDirectory, cr4, 0}, true);
  }

  std::optional<BusModel> bus_;
  std::optional<PageWalker> walker_;
};

TEST_F(PageWalkTest, PageWalksReadBothLevelsOnceAndShowAccessedAndDirtyBits) {
  entry(directory_at(0x08048000), kTable | 7);
  entry(table_at(0x08048000), 0x123007);
  start(0x80000001, 0);
  // The emulator's walker has set both accessed bits by the time we hear of the access.
  entry(directory_at(0x08048000), kTable | 0x27);
  entry(table_at(0x08048000), 0x123027);
  EXPECT_EQ(walker_->translate(0x08048123, false), 0x123123u);
  auto records = seen();
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[0].data[0], 0x07);  // read as it was
  EXPECT_EQ(records[1].type, 3);
  EXPECT_EQ(records[1].data[0], 0x27);
  EXPECT_EQ(walker_->translate(0x08048fff, false), 0x123fffu);
  EXPECT_TRUE(seen().empty());
  // The first store walks again, for the dirty bit.
  entry(table_at(0x08048000), 0x123067);
  EXPECT_EQ(walker_->translate(0x08048000, true), 0x123000u);
  records = seen();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[2].data[0], 0x67);
  EXPECT_FALSE(walker_->translate(0x09000000, false));
  EXPECT_EQ(bus_->external_changes(), 0u);
}

TEST_F(PageWalkTest, APageThatTheEmulatorWalksToAgainIsWalkedAgainOnTheBus) {
  constexpr std::uint32_t kLinear = 0x08048000;
  const std::uint32_t at = table_at(kLinear);
  entry(directory_at(kLinear), kTable | 0x27);
  entry(at, 0x123027);
  start(0x80000001, 0);
  EXPECT_EQ(walker_->translate(kLinear, false), 0x123000u);
  // The system clears the accessed bit without a word to the TLB.
  entry(at, 0x123007);
  bus_->write(at, {memory_.live(at), 4});
  (void)seen();
  EXPECT_EQ(walker_->translate(kLinear, false), 0x123000u);
  EXPECT_TRUE(seen().empty()) << "the TLB holds the page";
  entry(at, 0x123027);
  EXPECT_EQ(walker_->translate(kLinear, false), 0x123000u);
  const auto records = seen();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[1].data[0], 0x07);
  EXPECT_EQ(records[2].type, 3);
  EXPECT_EQ(records[2].data[0], 0x27);
  EXPECT_EQ(bus_->external_changes(), 0u);
}

constexpr unsigned kSure = HeldPage::sure_bit(true, false),
                   kSureOfSystem = HeldPage::sure_bit(false, false),
                   kSureOfUpdate = kSure | HeldPage::sure_bit(true, true);

TEST_F(PageWalkTest, APageIsHeldForSureAsLongAsNoTableIsStoredTo) {
  constexpr std::uint32_t kLinear = 0x08048000, kOther = 0x08049000;
  entry(directory_at(kLinear), kTable | 0x27);
  entry(table_at(kLinear), 0x123067);
  entry(table_at(kOther), 0x124067);
  start(0x80000001, 0, CacheModel::pentium);
  EXPECT_EQ(walker_->translate(kLinear, true), 0x123000u);
  EXPECT_EQ(walker_->surely_held(kLinear, false, kSure), nullptr) << "nobody has confirmed it";
  walker_->confirm(kLinear, true, false);
  const HeldPage* const page = walker_->surely_held(kLinear, true, kSure);
  ASSERT_NE(page, nullptr);
  EXPECT_EQ(page->frame, 0x123000u);
  EXPECT_EQ(walker_->surely_held(kLinear, false, kSureOfSystem), nullptr) << "of another level";
  EXPECT_EQ(walker_->surely_held(kOther, false, kSure), nullptr);
  EXPECT_EQ(memory_.uses_of(page->in_ram.live), 0);
  EXPECT_EQ(memory_.uses_of(memory_.live(table_at(kLinear))), GuestMemory::kTable);
  // A store to any table, even if it changes nothing.
  bus_->write(table_at(kOther), {memory_.live(table_at(kOther)), 4});
  EXPECT_EQ(walker_->surely_held(kLinear, false, kSure), nullptr);
  walker_->confirm(kLinear, true, false);
  EXPECT_EQ(walker_->surely_held(kLinear, false, kSure), page);
  // The TLB holds what the tables say no longer: the emulator may walk again at any time.
  entry(table_at(kLinear), 0x125067);
  bus_->write(table_at(kLinear), {memory_.live(table_at(kLinear)), 4});
  walker_->confirm(kLinear, true, false);
  EXPECT_EQ(walker_->surely_held(kLinear, false, kSure), nullptr);
}

TEST_F(PageWalkTest, TheRightToStoreIsKnownOnceSomethingWasStored) {
  constexpr std::uint32_t kLinear = 0x08048000, kShared = 0x08049000;
  entry(directory_at(kLinear), kTable | 0x27);
  entry(table_at(kLinear), 0x123067);
  entry(table_at(kShared), 0x124065);  // dirty, and read-only by now
  start(0x80000001, 0, CacheModel::pentium);
  for (const std::uint32_t linear : {kLinear, kShared}) {
    const auto at = walker_->translate(linear, true);
    ASSERT_TRUE(at && walker_->holds(linear, true, *at));
    walker_->confirm(linear, true, false);
    EXPECT_NE(walker_->surely_held(linear, false, kSure), nullptr);
    EXPECT_EQ(walker_->surely_held(linear, false, kSureOfUpdate), nullptr);
    walker_->confirm(linear, true, true);
  }
  EXPECT_NE(walker_->surely_held(kLinear, false, kSureOfUpdate), nullptr);
  EXPECT_EQ(walker_->surely_held(kLinear, false, kSureOfSystem), nullptr) << "of another level";
  EXPECT_EQ(walker_->surely_held(kShared, false, kSureOfUpdate), nullptr);
}

/// A page that a processor has walked for once, and may hold from then on.
class KeptPageTest : public PageWalkTest {
 protected:
  using Pages = std::vector<std::uint64_t>;
  static constexpr std::uint32_t kLinear = 0x08048000, kAt = kTable + 4 * 0x48;
  static constexpr std::uint32_t kPaging = 0x80000001, kLarge = 0x10, kGlobal = 0x80;

  void use(std::uint32_t flags = 7, std::uint32_t cr4 = kGlobal) {
    cr4_ = cr4;
    entry(directory_at(kLinear), kTable | 0x27);
    entry(kAt, 0x123020 | flags);
    start(kPaging, cr4);
    walker_->set_dropped([this](std::uint64_t page) { dropped_.push_back(page); });
    EXPECT_EQ(walker_->translate(kLinear, false), 0x123000u);
  }
  void load_cr3(std::uint32_t cr0 = kPaging) {
    walker_->set_control({cr0, kDirectory, cr4_, 0}, true);
  }
  void program_writes(std::uint32_t at, std::uint32_t value) {
    entry(at, value);
    bus_->write(at, {memory_.live(at), 4});
    (void)seen();
  }
  /// Others take the place of the page in the monitor's TLB, which is small.
  void crowd_out() {
    for (std::uint32_t page = 1; page <= 8; ++page)
      program_writes(kTable + 4 * (0x48 + 8 * page), 0x200027);
    for (std::uint32_t page = 1; page <= 8; ++page)
      EXPECT_TRUE(walker_->translate(kLinear + 0x8000 * page, false));
    (void)seen();
  }
  Pages dropped() { return std::exchange(dropped_, {}); }
  /// The pages that were dropped when the emulator walked again to one whose accessed bit a program
  /// had cleared. The bus shows that walk in any case.
  Pages dropped_by_walk() {
    std::uint32_t now = 0;
    std::memcpy(&now, ram_ + kAt, 4);
    program_writes(kAt, now & ~0x20u);
    entry(kAt, now | 0x20);
    EXPECT_TRUE(walker_->translate(kLinear + 0x123, false));
    unsigned writes = 0;
    for (const auto& record : seen()) writes += record.type == 3 && record.address == kAt ? 1u : 0u;
    EXPECT_EQ(writes, 1u);
    EXPECT_EQ(ram_[kAt] & 0x20, 0x20);
    EXPECT_EQ(bus_->external_changes(), 0u);
    return dropped();
  }

  std::uint32_t cr4_ = 0;
  Pages dropped_;
};

TEST_F(KeptPageTest, IsDroppedWhereTheEmulatorWalksAgainAndMarks) {
  use();
  EXPECT_EQ(dropped(), Pages{}) << "it was not held before";
  EXPECT_EQ(dropped_by_walk(), Pages{kLinear});
  EXPECT_EQ(dropped_by_walk(), Pages{kLinear});
  crowd_out();
  EXPECT_EQ(dropped(), Pages{});
  EXPECT_TRUE(walker_->translate(kLinear, false));
  EXPECT_EQ(dropped(), Pages{}) << "a walk that finds the same";
  crowd_out();
  EXPECT_EQ(dropped_by_walk(), Pages{kLinear}) << "though the small TLB does not hold it";
}

TEST_F(KeptPageTest, IsNotDroppedOnceMoreWhereTheProgramHasDone) {
  use();
  load_cr3();
  EXPECT_EQ(dropped_by_walk(), Pages{}) << "by a load of CR3";
  walker_->invalidate(kLinear + 5);
  EXPECT_EQ(dropped_by_walk(), Pages{}) << "by INVLPG";
  walker_->faulting_walk(kLinear);
  (void)seen();
  EXPECT_EQ(dropped_by_walk(), Pages{}) << "by a page fault";
  load_cr3(kPaging | 0x10000);
  EXPECT_EQ(dropped_by_walk(), Pages{}) << "by another mode";
}

TEST_F(KeptPageTest, IsStillHeldAfterWhatDropsOthers) {
  use();
  walker_->invalidate(kLinear + 0x1000);
  EXPECT_EQ(dropped_by_walk(), Pages{kLinear});
  use(0x107);
  load_cr3();
  EXPECT_EQ(dropped_by_walk(), Pages{kLinear}) << "a global page";
  use(0x107, 0);
  load_cr3();
  EXPECT_EQ(dropped_by_walk(), Pages{}) << "without CR4.PGE none is global";
}

TEST_F(KeptPageTest, IsDroppedWhereTheEmulatorFindsItElsewhere) {
  use();
  program_writes(kAt, 0x124027);
  crowd_out();
  EXPECT_EQ(walker_->translate_as(kLinear, false, 0x123000), 0x123000u);
  EXPECT_EQ(dropped(), Pages{}) << "the emulator holds it, too";
  EXPECT_EQ(walker_->translate_as(kLinear + 8, false, 0x124008), 0x124008u);
  EXPECT_EQ(dropped(), Pages{kLinear});
  EXPECT_EQ(walker_->translate_as(kLinear, false, 0x124000), 0x124000u);
  EXPECT_EQ(dropped(), Pages{});
  EXPECT_EQ(walker_->disagreements(), 0u);
}

TEST_F(KeptPageTest, IsDroppedWhereTheEmulatorMayNotAccessItAnyMore) {
  for (const std::uint32_t later : {0x123026u, 0x123025u, 0x123023u, 0x124027u}) {
    use();
    program_writes(kAt, later);
    walker_->faulting_walk(kLinear + 4);
    EXPECT_EQ(dropped(), Pages{kLinear}) << later;
  }
  use(5);
  walker_->faulting_walk(kLinear + 4);
  EXPECT_EQ(dropped(), Pages{}) << "a processor that holds it may not store there, either";
}

TEST_F(KeptPageTest, IsWalkedForByAProcessorTooWhenItIsCleanAndStoredTo) {
  use();
  program_writes(kAt, 0x123007);
  entry(kAt, 0x123067);
  EXPECT_EQ(walker_->translate(kLinear, true), 0x123000u);
  EXPECT_EQ(dropped(), Pages{});
  program_writes(kAt, 0x123027);
  entry(kAt, 0x123067);
  EXPECT_EQ(walker_->translate(kLinear, true), 0x123000u);
  EXPECT_EQ(dropped(), Pages{kLinear}) << "it was dirty for a processor since the first store";
}

TEST_F(KeptPageTest, IsMadeDirtyByAProcessorWhereAnInstructionUpdatesIt) {
  use();
  // The emulator has not walked for the load, and marks with the store.
  EXPECT_TRUE(walker_->translate_for_update(kLinear, false, 0x123000));
  EXPECT_EQ(walker_->translate(kLinear, false), 0x123000u);
  entry(kAt, 0x123067);
  EXPECT_EQ(walker_->translate(kLinear, true), 0x123000u);
  EXPECT_EQ(dropped(), Pages{});
  program_writes(kAt, 0x123027);
  EXPECT_TRUE(walker_->translate_for_update(kLinear, false, 0x123000));
  entry(kAt, 0x123067);
  EXPECT_EQ(walker_->translate(kLinear, true), 0x123000u);
  EXPECT_EQ(dropped(), Pages{kLinear});
}

/// What is fetched is told of together, when a store has marked its page already.
TEST_F(KeptPageTest, IsNotDroppedWhereAStoreThatIsYetToBeToldMarksItAsDirty) {
  use();
  entry(kAt, 0x123067);
  EXPECT_EQ(walker_->translate(kLinear, false), 0x123000u);
  EXPECT_EQ(walker_->translate(kLinear, true), 0x123000u);
  EXPECT_EQ(dropped(), Pages{});
  program_writes(kAt, 0x123027);
  entry(kAt, 0x123067);
  EXPECT_EQ(walker_->translate(kLinear, true), 0x123000u);
  EXPECT_EQ(dropped(), Pages{kLinear});
}

TEST_F(KeptPageTest, IsNotMarkedWhereTheEmulatorHasNotWalkedAgain) {
  use();
  program_writes(kAt, 0x123007);
  crowd_out();
  EXPECT_EQ(walker_->translate(kLinear, false), 0x123000u);
  EXPECT_EQ(ram_[kAt], 0x07);
  for (const auto& record : seen()) EXPECT_NE(record.type, 3);
  EXPECT_EQ(dropped(), Pages{});
}

TEST_F(KeptPageTest, IsDroppedPieceByPieceWhereALargePageWasSplit) {
  entry(directory_at(kLinear), 0xa7);
  start(kPaging, kLarge);
  walker_->set_dropped([this](std::uint64_t page) { dropped_.push_back(page); });
  EXPECT_EQ(walker_->translate(0x08000000, false), 0u);
  EXPECT_EQ(walker_->translate(kLinear, false), 0x48000u);
  program_writes(kTable, 7);
  program_writes(kAt, 0x48007);
  program_writes(directory_at(kLinear), kTable | 0x27);
  crowd_out();
  entry(kAt, 0x48027);
  EXPECT_EQ(walker_->translate(kLinear, false), 0x48000u);
  EXPECT_EQ(dropped(), Pages{kLinear});
  // INVLPG drops all pieces of what was a large page.
  walker_->invalidate(0x08050000);
  entry(kTable, 0x27);
  EXPECT_EQ(walker_->translate(0x08000000, false), 0u);
  EXPECT_EQ(dropped(), Pages{});
}

/// Only the monitor's small TLB walks: a processor that holds the large page would not.
TEST_F(KeptPageTest, IsDroppedWhereASplitPageIsWalkedForTheFirstTime) {
  entry(directory_at(kLinear), 0xe7);
  start(kPaging, kLarge);
  walker_->set_dropped([this](std::uint64_t page) { dropped_.push_back(page); });
  EXPECT_EQ(walker_->translate(kLinear, false), 0x48000u);
  program_writes(kAt, 0x48067);
  program_writes(directory_at(kLinear), kTable | 0x27);
  crowd_out();
  EXPECT_EQ(walker_->translate(kLinear, false), 0x48000u);
  EXPECT_EQ(dropped(), Pages{kLinear});
}

TEST_F(PageWalkTest, AWalkThatEndsInAFaultTakesBackWhatTheEmulatorSet) {
  constexpr std::uint32_t kLinear = 0x080f63c0;
  const std::uint32_t at = table_at(kLinear);
  entry(directory_at(kLinear), kTable | 0x67);
  entry(at, 0x123045);  // read-only, not accessed
  start(0x80010001, 0);
  entry(at, 0x123065);
  walker_->faulting_walk(kLinear);
  EXPECT_EQ(ram_[at], 0x45);
  auto records = seen();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].data[0], 0x45);
  // What the system itself changed is not taken back.
  entry(at, 0x124065);
  walker_->faulting_walk(kLinear);
  EXPECT_EQ(ram_[at], 0x65);
  EXPECT_EQ(bus_->external_changes(), 1u);
}

TEST_F(PageWalkTest, AStoreThatTheEmulatorDoesNotMakeSetsItsBitsInTheTables) {
  constexpr std::uint32_t kLinear = 0x08048000;
  const std::uint32_t above = directory_at(kLinear);
  const std::uint32_t at = table_at(kLinear);
  entry(above, kTable | 7);
  entry(at, 0x123007);
  start(0x80000001, 0);
  EXPECT_EQ(walker_->translate_own_store(kLinear + 5), 0x123005u);
  EXPECT_EQ(ram_[above], 0x27);
  EXPECT_EQ(ram_[at], 0x67);
  const auto records = seen();
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[3].type, 3);
  EXPECT_EQ(records[3].data[0], 0x67);
  EXPECT_EQ(walker_->translate_own_store(kLinear + 6), 0x123006u);
  EXPECT_TRUE(seen().empty());
  EXPECT_EQ(bus_->external_changes(), 0u);
}

TEST_F(PageWalkTest, AMarkThatWasTakenBackIsMadeByTheNextStore) {
  constexpr std::uint32_t kLinear = 0x08048000;
  entry(directory_at(kLinear), kTable | 0x27);
  entry(table_at(kLinear), 0x123007);
  start(0x80000001, 0);
  entry(table_at(kLinear), 0x123067);
  walker_->take_back_marks(kLinear);
  EXPECT_EQ(ram_[table_at(kLinear)], 0x07);
  EXPECT_TRUE(seen().empty());
  // The emulator holds the page, and marks nothing.
  EXPECT_EQ(walker_->translate(kLinear, true), 0x123000u);
  EXPECT_EQ(ram_[table_at(kLinear)], 0x67);
  const auto records = seen();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[2].data[0], 0x67);
}

TEST_F(PageWalkTest, PaePointersAreReadWithCr3AndKept) {
  std::memset(ram_ + kDirectory, 0, 0x5000);
  constexpr std::uint32_t kPaging = 0x80010001, kPae = 0x20, kLinear = 0x40006123;
  wide_entry(kDirectory + 8, 0x301001);
  wide_entry(kTable, 0x302067);
  wide_entry(0x302000 + 8 * 6, 0x123067);
  start(kPaging, kPae);
  EXPECT_EQ(seen().size(), 8u) << "four entries of two dwords";
  wide_entry(kDirectory + 8, 0x304001);
  EXPECT_EQ(walker_->translate(kLinear, false), 0x123123u);
  EXPECT_EQ(seen().size(), 4u) << "of directory and table";
  walker_->set_control({kPaging & ~0x10000u, kDirectory, kPae, 0}, false);
  EXPECT_TRUE(seen().empty()) << "CR0.WP";
  walker_->set_control({kPaging, kDirectory, kPae | 0x80, 0}, false);
  EXPECT_EQ(seen().size(), 8u) << "CR4.PGE";
  EXPECT_FALSE(walker_->translate(kLinear, false));
}

TEST_F(PageWalkTest, AMarkIsShownWithItsOwnWalkWhenAnotherReadsItsLineFirst) {
  constexpr std::uint32_t kFirst = 0x08048000, kSecond = 0x08049000;
  for (const CacheModel model : {CacheModel::i486, CacheModel::write_back, CacheModel::pentium}) {
    entry(directory_at(kFirst), kTable | 0x27);
    entry(table_at(kFirst), 0x123007);
    entry(table_at(kSecond), 0x124027);
    start(0x80000001, 0, model);
    entry(table_at(kFirst), 0x123067);
    EXPECT_EQ(walker_->translate(kSecond, false), 0x124000u);
    EXPECT_EQ(*memory_.shadow(table_at(kFirst)), 0x07) << "of a walk that is yet to be shown";
    EXPECT_EQ(walker_->translate(kFirst, true), 0x123000u);
    EXPECT_EQ(*memory_.shadow(table_at(kFirst)), 0x67);
    EXPECT_EQ(bus_->external_changes(), 0u);
    // A device that writes the very bits of a mark is found when they are read.
    ram_[table_at(kSecond)] |= 0x40;
    bus_->read_ram(table_at(kSecond), 4);
    EXPECT_EQ(bus_->external_changes(), 1u);
    EXPECT_EQ(*memory_.shadow(table_at(kSecond)), 0x67);
  }
}

TEST_F(PageWalkTest, WhatAnUpdateMarksAheadOfTheEmulatorIsNoDevices) {
  std::memset(ram_ + kDirectory, 0, 0x5000);
  constexpr std::uint32_t kLinear = 0x3000, kTableOfPae = 0x302000;
  wide_entry(kDirectory, 0x301001);
  wide_entry(kTable, kTableOfPae | 0x27);
  wide_entry(kTableOfPae + 8 * 3, 0x123007);
  start(0x80000001, 0x20, CacheModel::i486);
  // The emulator has walked for the load; a processor walks once, for the store.
  wide_entry(kTableOfPae + 8 * 3, 0x123027);
  EXPECT_TRUE(walker_->translate_for_update(kLinear, true, 0x123000));
  (void)seen();
  EXPECT_EQ(walker_->translate(kLinear, false), 0x123000u);
  EXPECT_EQ(walker_->translate(kLinear, true), 0x123000u);
  EXPECT_TRUE(seen().empty());
  EXPECT_EQ(bus_->external_changes(), 0u);
}

TEST_F(PageWalkTest, PaePointersKeepNoAccessedBit) {
  constexpr std::uint64_t kPointer = 0x301001;
  std::memset(ram_ + kDirectory, 0, 0x1000);
  wide_entry(kDirectory + 8, kPointer);
  prepare();
  // The emulator fetches the next instruction before we hear of this one.
  ram_[kDirectory + 8] |= 0x20;
  walker_->set_control({0x80010001, kDirectory, 0x20, 0}, true);
  EXPECT_EQ(seen().size(), 8u) << "nothing is written";
  ram_[kDirectory + 8] |= 0x20;
  walker_->take_back_pointer_marks();
  EXPECT_EQ(ram_[kDirectory + 8], 0x01);
  ram_[kDirectory + 8] = 0x45;  // by a device
  walker_->take_back_pointer_marks();
  EXPECT_EQ(ram_[kDirectory + 8], 0x45);
}

TEST_F(PageWalkTest, PaeEntriesThatAreMarkedNoExecuteMapTheirPages) {
  std::memset(ram_ + kDirectory, 0, 0x5000);
  wide_entry(kDirectory, 0x301001);
  wide_entry(kTable, 0x302067);
  wide_entry(0x302000, 0x8000000000123066);  // not present: anything may stand there
  wide_entry(0x302008, 0x8000000000124067);  // no-execute
  start(0x80010001, 0x20);
  EXPECT_FALSE(walker_->translate(0x0000, false));
  EXPECT_EQ(walker_->translate(0x1000, false), 0x124000u);
}

TEST_F(PageWalkTest, PaeTablesAndPagesMayLieBeyond4GiB) {
  place_high_memory();
  std::memset(ram_ + kDirectory, 0, 0x1000);
  std::memset(ram_ + kHighRam, 0, 0x3000);
  wide_entry(kDirectory, 0x100000001);         // the directory
  wide_entry(kHighRam, 0x100001067);           // a table
  wide_entry(kHighRam + 0x1000, 0x100002067);  // a page
  wide_entry(kHighRam + 8, 0x1000000e7);       // and a large one
  start(0x80010001, 0x20);
  EXPECT_EQ(walker_->translate(0x0123, false), 0x100002123u);
  EXPECT_EQ(walker_->locate(0x0123), 0x100002123u);
  EXPECT_EQ(walker_->translate(0x201123, false), 0x100001123u);
  EXPECT_EQ(walker_->locate(0x202123), 0x100002123u);
}

TEST_F(PageWalkTest, PagesOf4MiBThatEntriesOfFourBytesNameMayLieBeyond4GiB) {
  constexpr std::uint32_t kBit32 = 1u << 13;  // of the address: Intel SDM vol. 3, table 4-4
  place_high_memory();
  entry(directory_at(0x08000000), kBit32 | 0xe7);
  start(0x80010001, 0x10);
  EXPECT_EQ(walker_->translate(0x08002123, false), 0x100002123u);
  EXPECT_EQ(walker_->locate(0x08002123), 0x100002123u);
}

TEST_F(PageWalkTest, AnUpdateOfAPageThatMayNotBeWrittenFaultsBeforeItReads) {
  constexpr std::uint32_t kPaging = 0x80010001, kLinear = 0x080f63c0;
  entry(directory_at(kLinear), kTable | 0x67);
  entry(table_at(kLinear), 0x123065);  // read-only, accessed
  entry(table_at(kLinear + 0x1000), 0x124067);
  start(kPaging, 0);
  EXPECT_FALSE(walker_->translate_for_update(kLinear, true, 0x1233c0));
  EXPECT_FALSE(walker_->translate_for_update(kLinear, false, 0x1233c0));  // CR0.WP
  EXPECT_TRUE(seen().empty()) << "the walk is shown with the fault";
  EXPECT_TRUE(walker_->translate_for_update(kLinear + 0x1000, true, 0x1243c0));
  EXPECT_EQ(seen().size(), 2u);
  entry(table_at(kLinear + 0x1000), 0x124065);  // dirty, but not any more writable
  EXPECT_FALSE(walker_->translate_for_update(kLinear + 0x1000, true, 0x1243c0));
  EXPECT_FALSE(walker_->translate_for_update(kLinear + 0x1000, true, std::nullopt));
}

}  // namespace
}  // namespace citcat::monitor
