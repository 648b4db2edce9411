#include "events/smm_entry.h"

#include <gtest/gtest.h>

#include "events/derive/recording_builder.h"

namespace citcat::test {
namespace {

BusTransaction make(BusOp op, std::uint32_t address, std::uint8_t size, std::uint64_t at,
                    std::uint16_t flags = 0) {
  BusTransaction t;
  t.op = op;
  t.address = PhysAddr{address};
  t.size = size;
  t.position = {at, 0};
  t.flags = static_cast<std::uint16_t>(flags | kPositionKnown);
  return t;
}

/// 128 dwords downward from `top`, as an SMI with SMBASE = top + 4 - 10000h saves them.
std::vector<BusTransaction> saved_state(std::uint32_t top, std::uint64_t at) {
  std::vector<BusTransaction> result;
  for (std::uint32_t i = 0; i < 128; ++i) {
    result.push_back(make(BusOp::data_write, top - 4 * i, 4, at));
  }
  return result;
}

/// The same as the line fills of a cache that holds the stores back.
std::vector<BusTransaction> cached_state(std::uint32_t top, std::uint64_t at) {
  std::vector<BusTransaction> result;
  for (std::uint32_t line = top - 0x1c; line > top - 512; line -= 0x20) {
    result.push_back(make(BusOp::data_read, line, 16, at, kLine | kStoreFill));
    result.push_back(make(BusOp::data_read, line + 16, 16, at, kLine | kStoreFill));
  }
  return result;
}

struct Derived {
  std::vector<Interrupt> interrupts;
  std::optional<std::uint32_t> smbase;
};

Derived derive(const std::vector<BusTransaction>& transactions) {
  RecordingBuilder builder({}, nullptr);
  std::uint64_t index = 0;
  for (BusTransaction t : transactions) {
    t.index = index++;
    builder.add(t);
  }
  const auto smbase = builder.smbase();
  return {builder.finish().interrupts, smbase};
}

std::vector<Interrupt> interrupts_of(const std::vector<BusTransaction>& transactions) {
  return derive(transactions).interrupts;
}

std::vector<BusTransaction> halves(const std::vector<BusTransaction>& dwords) {
  std::vector<BusTransaction> result;
  for (BusTransaction t : dwords) {
    t.size = 2;
    result.push_back(t);
    t.address.value += 2;
    result.push_back(t);
  }
  return result;
}

std::vector<BusTransaction> joined(std::vector<BusTransaction> first,
                                   const std::vector<BusTransaction>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST(SmmEntry, IsToldByTheSavedStateAndTheHandlersFetch) {
  std::vector<BusTransaction> bus = {make(BusOp::code_read, 0x1000, 4, 6)};
  for (const BusTransaction& t : saved_state(0x3fffc, 7)) bus.push_back(t);
  bus.push_back(make(BusOp::code_read, 0x38000, 4, 7));
  const std::vector<Interrupt> found = interrupts_of(bus);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, Interrupt::Kind::smi);
  EXPECT_EQ(found[0].position, (Position{7, 0}));
  EXPECT_EQ(found[0].transaction, 1u);
}

TEST(SmmEntry, IsToldByTheStartOfTheHandlerWhereAMonitorSeesInstructions) {
  std::vector<BusTransaction> bus = saved_state(0x3fffc, 7);
  bus.push_back(make(BusOp::instruction_start, 0x38000, 1, 7, kPrefix));
  bus.push_back(make(BusOp::instruction_start, 0x38001, 5, 7));
  bus.push_back(make(BusOp::code_read, 0x38000, 4, 7));
  EXPECT_EQ(interrupts_of(bus).size(), 1u);
}

/// The handler's first fetch: of a bus, of a line, or as a monitor of instructions sees it.
std::vector<BusTransaction> handlers(std::uint32_t smbase, std::uint64_t at) {
  const std::uint32_t entry = smbase + 0x8000;
  return {make(BusOp::code_read, entry, 2, at), make(BusOp::code_read, entry, 4, at),
          make(BusOp::code_read, entry, 16, at, kLine),
          make(BusOp::instruction_start, entry, 3, at)};
}

/// After a reset; where every BIOS moves it; another processor's; the top of RAM.
constexpr std::uint32_t kBases[] = {0x30000, 0xa0000, 0xa8000, 0x3f00000, 0x3ff8000};

TEST(SmmEntry, TellsSmbaseWhereverItIsAndHoweverItIsSaved) {
  for (const std::uint32_t base : kBases) {
    const std::uint32_t top = base + 0xfffc;
    for (const BusTransaction& fetch : handlers(base, 3)) {
      for (const auto& saved :
           {saved_state(top, 3), halves(saved_state(top, 3)), cached_state(top, 3)}) {
        const Derived unnamed = derive(joined(saved, {fetch}));
        EXPECT_EQ(unnamed.interrupts.size(), 1u) << std::hex << base;
        EXPECT_EQ(unnamed.smbase, base);
        const Derived named = derive(joined({make(BusOp::smi, 0, 0, 3)}, joined(saved, {fetch})));
        EXPECT_EQ(named.interrupts.size(), 1u);
        EXPECT_EQ(named.smbase, base);
      }
    }
  }
}

TEST(SmmEntry, IsNoFillsWhoseHandlerIsElsewhere) {
  const Derived found =
      derive(joined(cached_state(0xafffc, 3), {make(BusOp::code_read, 0x38000, 16, 3, kLine)}));
  EXPECT_TRUE(found.interrupts.empty());
  EXPECT_FALSE(found.smbase);
}

TEST(SmmEntry, TellsTheSmbaseOfTheFirst) {
  const auto at_reset = joined(saved_state(0x3fffc, 3), {make(BusOp::code_read, 0x38000, 4, 3)});
  const auto moved = joined(saved_state(0xafffc, 50), {make(BusOp::code_read, 0xa8000, 4, 50)});
  EXPECT_EQ(derive(joined(at_reset, moved)).smbase, 0x30000u);
}

/// A processor need not save all of its state, nor in the order that the detector knows.
TEST(Smbase, OfANamedSmiIsToldByAnyStoresThatItsHandlerIsBelow) {
  std::vector<BusTransaction> bus = {make(BusOp::smi, 0, 0, 7)};
  for (const std::uint32_t at : {0xaff00u, 0xaff04u, 0xafffcu, 0xafef8u})
    bus.push_back(make(BusOp::data_write, at, 4, 7));
  bus.push_back(make(BusOp::data_write, 0x11000, 16, 7, kLine | kWriteBack));  // gives way
  bus.push_back(make(BusOp::code_read, 0x12340, 4, 7));                        // fetched ahead
  bus.push_back(make(BusOp::code_read, 0xa8000, 4, 7));
  EXPECT_EQ(derive(bus).smbase, 0xa0000u);
}

TEST(Smbase, OfANamedSmiIsNotKnownWhereNothingItStoresIsOnTheBus) {
  EXPECT_FALSE(derive({make(BusOp::smi, 0, 0, 7), make(BusOp::code_read, 0xa8000, 4, 7)}).smbase);
}

TEST(Smbase, OfANamedSmiIsNotToldByWhatIsStoredFarApart) {
  EXPECT_FALSE(
      derive({make(BusOp::smi, 0, 0, 7), make(BusOp::data_write, 0xafffc, 4, 7),
              make(BusOp::data_write, 0x1000, 4, 7), make(BusOp::code_read, 0xa8000, 4, 7)})
          .smbase);
}

TEST(Smbase, OfANamedSmiIsNotToldByTheNextInterrupt) {
  EXPECT_FALSE(
      derive({make(BusOp::smi, 0, 0, 7), make(BusOp::nmi, 0, 0, 8),
              make(BusOp::data_write, 0xafffc, 4, 8), make(BusOp::code_read, 0xa8000, 4, 8)})
          .smbase);
}

TEST(SmmEntry, IsNoBlockThatOneInstructionAfterAnotherClearsDownward) {
  std::vector<BusTransaction> bus = saved_state(0x3fffc, 7);
  for (std::size_t i = 0; i < bus.size(); ++i) bus[i].position = {7 + i, 0};
  bus.push_back(make(BusOp::code_read, 0x38000, 4, 7));
  EXPECT_TRUE(interrupts_of(bus).empty());
}

TEST(SmmEntry, IsNoBlockThatARepeatedStoreClearsDownward) {
  std::vector<BusTransaction> bus = saved_state(0x3fffc, 7);
  for (std::size_t i = 0; i < bus.size(); ++i) {
    bus[i].position = {7, static_cast<std::uint32_t>(i)};
  }
  bus.push_back(make(BusOp::code_read, 0x38000, 4, 8));
  EXPECT_TRUE(interrupts_of(bus).empty());
}

TEST(SmmEntry, NeedsTheHandlersFetch) {
  std::vector<BusTransaction> bus = saved_state(0x3fffc, 7);
  bus.push_back(make(BusOp::code_read, 0x38040, 4, 7));
  EXPECT_TRUE(interrupts_of(bus).empty());
}

TEST(SmmEntry, IsToldByFillsWhereACacheHoldsTheStoresBack) {
  std::vector<BusTransaction> bus;
  for (std::uint32_t line = 0x3ffe0; line >= 0x3fe00; line -= 0x20) {
    if (line == 0x3ff40) continue;  // in the cache already
    bus.push_back(make(BusOp::data_write, 0x11000, 16, 7, kLine | kWriteBack));  // its victim
    bus.push_back(make(BusOp::data_read, line, 16, 7, kLine | kStoreFill));
    bus.push_back(make(BusOp::data_read, line + 16, 16, 7, kLine | kStoreFill));
  }
  bus.push_back(make(BusOp::data_write, 0x38000, 16, 7, kLine | kWriteBack | kSnoop));
  bus.push_back(make(BusOp::code_read, 0x38000, 16, 7, kLine));
  const std::vector<Interrupt> found = interrupts_of(bus);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].transaction, 1u);
}

TEST(SmmEntry, TakesTheRevisionFromTheSavedState) {
  std::vector<BusTransaction> bus = saved_state(0x3fffc, 7);
  bus[(0x3fffc - 0x3fefc) / 4].data[0] = 0x64;
  bus.push_back(make(BusOp::code_read, 0x38000, 4, 7));
  // What the handler writes there later is no longer what the processor saved.
  bus.push_back(make(BusOp::data_write, 0x3fefc, 4, 9));
  const std::vector<Interrupt> found = interrupts_of(bus);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].vector, 0x64);
}

TEST(SmmEntry, TakesTheRevisionFromTheWriteBackOfACachedState) {
  std::vector<BusTransaction> bus;
  for (std::uint32_t line = 0x3ffe0; line >= 0x3fe00; line -= 0x20) {
    bus.push_back(make(BusOp::data_read, line, 16, 7, kLine | kStoreFill));
    bus.push_back(make(BusOp::data_read, line + 16, 16, 7, kLine | kStoreFill));
  }
  bus.push_back(make(BusOp::code_read, 0x38000, 16, 7, kLine));
  bus.push_back(make(BusOp::data_write, 0x3fef0, 16, 60, kLine | kWriteBack));
  bus.back().data[0xc] = 0x64;
  const std::vector<Interrupt> found = interrupts_of(bus);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].vector, 0x64);
}

TEST(SmmEntry, GivesItsRevisionToAnSmiThatTheMonitorNames) {
  std::vector<BusTransaction> bus = {make(BusOp::smi, 0, 0, 7)};
  for (const BusTransaction& t : saved_state(0x3fffc, 7)) bus.push_back(t);
  bus[1 + (0x3fffc - 0x3fefc) / 4].data[0] = 0x64;
  bus.push_back(make(BusOp::code_read, 0x38000, 4, 7));
  const std::vector<Interrupt> found = interrupts_of(bus);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].vector, 0x64);
}

TEST(SmmEntry, IsNotDerivedTwiceWhereTheMonitorNamesIt) {
  std::vector<BusTransaction> bus = {make(BusOp::smi, 0, 0, 7)};
  for (const BusTransaction& t : saved_state(0x3fffc, 7)) bus.push_back(t);
  bus.push_back(make(BusOp::code_read, 0x38000, 4, 7));
  EXPECT_EQ(interrupts_of(bus).size(), 1u);
}

TEST(SmmEntry, ThatAMonitorNamesNeedsNoFetchOfItsHandler) {
  std::vector<BusTransaction> bus = {make(BusOp::code_read, 0x1000, 4, 6),
                                     make(BusOp::smi, 0, 0, 7)};
  for (BusTransaction t : saved_state(0x3fffc, 7)) {
    if (t.address.value == 0x3fefc) t.data[0] = 0x64;
    bus.push_back(t);
  }
  bus.push_back(make(BusOp::data_read, 0x2000, 4, 7));
  const auto found = interrupts_of(bus);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].vector, 0x64);
}

TEST(SmmEntry, BetweenTwoIterationsLeavesThemBehind) {
  std::vector<BusTransaction> bus = saved_state(0x3fffc, 7);
  for (BusTransaction& t : bus) t.position.iteration = 3;
  bus.push_back(make(BusOp::code_read, 0x38000, 4, 7));
  EXPECT_EQ(interrupts_of(bus).size(), 1u);
}

}  // namespace
}  // namespace citcat::test
