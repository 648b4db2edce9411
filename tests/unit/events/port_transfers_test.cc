#include "events/port_transfers.h"

#include <gtest/gtest.h>

#include "events/archive/recording_codec.h"

namespace citcat {
namespace {

BusModel bus_of(std::uint32_t bytes) { return {CacheForm::none, 0, bytes, 0xffffffff}; }

/// An 80286 raises A16 for it, as its single-step tests show (docs/silicon.md).
TEST(PortAccess, GoesOnBehindPortFfff) {
  const PortBus bus(bus_of(2), CpuModel::i286);
  for (const std::uint32_t behind : {0x10000u, 0u}) {
    PortAccess access(bus, 0xffff, 2);
    EXPECT_EQ(access.take(PhysAddr{0xffff}, 1), 0u);
    EXPECT_EQ(access.take(PhysAddr{behind}, 1), 1u);
    EXPECT_TRUE(access.complete());
  }
  PortAccess elsewhere(bus, 0xffff, 2);
  EXPECT_EQ(elsewhere.take(PhysAddr{0xffff}, 1), 0u);
  EXPECT_FALSE(elsewhere.take(PhysAddr{0x20000}, 1));
  PortAccess low(bus, 0x60, 1);
  EXPECT_FALSE(low.take(PhysAddr{0x10060}, 1));
}

TEST(PortAccess, TakesNothingWhenItIsComplete) {
  const PortBus bus(bus_of(1), CpuModel::i8088);
  PortAccess access(bus, 0x3d4, 2);
  EXPECT_FALSE(access.begun());
  EXPECT_TRUE(access.take(PhysAddr{0x3d4}, 1));
  EXPECT_TRUE(access.begun());
  EXPECT_TRUE(access.take(PhysAddr{0x3d5}, 1));
  EXPECT_TRUE(access.complete());
  EXPECT_FALSE(access.take(PhysAddr{0x3d6}, 1));
}

/// A capture that declares no width is taken for one of 32 bits.
TEST(PortAccess, TakesAnyTransferOfTheProcessorWhereTheWidthIsNotDeclared) {
  const PortBus bus(bus_of(4), CpuModel::i8088);
  PortAccess bytes(bus, 0x3d4, 2);
  EXPECT_TRUE(bytes.take(PhysAddr{0x3d4}, 1));
  EXPECT_TRUE(bytes.take(PhysAddr{0x3d5}, 1));
  PortAccess word(bus, 0x3d4, 2);
  EXPECT_TRUE(word.take(PhysAddr{0x3d4}, 2));
  EXPECT_TRUE(word.complete());
}

TEST(PortCount, OfANewRecordingIsInBytes) {
  Recording recording;
  recording.bus = bus_of(1);
  recording.initial.model = CpuModel::i8088;
  const PortCount count(recording);
  EXPECT_EQ(count.of(0x3d4, 2), 2u);
  BusTransaction t;
  t.op = BusOp::io_write;
  t.size = 2;
  EXPECT_EQ(count.of(t), 2u);
}

TEST(PortCount, OfAnArchiveOfAnEarlierVersionIsInTransactions) {
  Recording recording;
  recording.port_unit = PortUnit::transactions;
  recording.bus = bus_of(2);
  recording.initial.model = CpuModel::i286;
  BusTransaction t;
  t.op = BusOp::io_write;
  t.size = 2;
  EXPECT_EQ(PortCount(recording).of(t), 1u);
  EXPECT_EQ(PortCount(recording).of(0x3d4, 2), 1u);
  EXPECT_EQ(PortCount(recording).of(0x3d5, 2), 2u);
  IoRead whole;
  whole.port = 0x61;
  whole.size = 2;  // which no bus of 16 bits makes of it
  recording.io_reads.push_back(whole);
  EXPECT_EQ(PortCount(recording).of(0x3d5, 2), 1u);
}

Recording through_meta(const Recording& recording, bool cut) {
  std::vector<std::uint8_t> bytes = encode_meta(recording, {});
  if (cut) bytes.resize(bytes.size() - 2);
  ByteReader in(bytes, "META", 0);
  Recording result;
  ArchiveMeta meta;
  decode_meta(in, result, meta);
  return result;
}

TEST(PortUnit, IsKeptInArchivesAndTransactionsWhereOneDoesNotTell) {
  Recording recording;
  recording.ending = Ending::stop;
  EXPECT_EQ(through_meta(recording, false).port_unit, PortUnit::bytes);
  EXPECT_EQ(through_meta(recording, false).ending, Ending::stop);
  EXPECT_EQ(through_meta(recording, true).port_unit, PortUnit::transactions);
  recording.port_unit = PortUnit::transactions;
  EXPECT_EQ(through_meta(recording, false).port_unit, PortUnit::transactions);
  EXPECT_EQ(through_meta(recording, false).ending, Ending::stop);
}

}  // namespace
}  // namespace citcat
