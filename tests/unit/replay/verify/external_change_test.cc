// What writes of other bus masters change.

#include "replay/verify/external_change.h"

#include <gtest/gtest.h>

#include <array>

#include "unit/replay/verify/idle_machine.h"

namespace citcat::test {
namespace {

class ExternalChangesTest : public testing::Test {
 protected:
  void record(std::uint32_t address, std::uint64_t transaction) {
    ExternalWrite w;
    w.address = PhysAddr{address};
    w.data = {0};
    w.transaction = transaction;
    machine_.recording().external_writes.push_back(w);
  }
  ExternalChange change(std::uint32_t address, std::uint8_t byte) {
    return changes_->observe(PhysAddr{address}, {&byte, 1}, machine_.memory());
  }
  void begin() { changes_.emplace(machine_.recording(), 0); }

  IdleMachine machine_;
  std::optional<ExternalChanges> changes_;
};

TEST_F(ExternalChangesTest, BitsAreCountedOfMemoryAsItIs) {
  begin();
  EXPECT_EQ(change(0x1010, 0x10).bits, 0u);
  EXPECT_EQ(change(0x1010, 0x13).bits, 2u);
  EXPECT_EQ(change(0x3000, 0xff).bits, 0u) << "nothing was known of this byte";
}

TEST_F(ExternalChangesTest, AccessedAndDirtyBitsMarkAPresentEntry) {
  machine_.store(0x1020, {0x01});
  begin();
  EXPECT_TRUE(change(0x1020, 0x61).marks_table_entry);
  EXPECT_FALSE(change(0x1020, 0x63).marks_table_entry);
  EXPECT_FALSE(change(0x1024, 0x44).marks_table_entry) << "not present";
  EXPECT_FALSE(change(0x1021, 0x61 ^ 0x40).marks_table_entry) << "not where an entry begins";
}

TEST_F(ExternalChangesTest, TheTransactionIsThatOfTheNextWriteToTheAddress) {
  record(0x1010, 7);
  record(0x1010, 9);
  begin();
  EXPECT_EQ(change(0x1010, 0).transaction, 7u);
  EXPECT_EQ(change(0x1010, 0).transaction, 9u);
  EXPECT_EQ(change(0x1010, 0).transaction, kNoTransaction);
  changes_->restore(1);
  EXPECT_EQ(change(0x1010, 0).transaction, 9u);
}

}  // namespace
}  // namespace citcat::test
