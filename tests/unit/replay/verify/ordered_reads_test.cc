// Reads of data in the order in which the pins show them.

#include "replay/verify/ordered_reads.h"

#include <gtest/gtest.h>

#include "unit/replay/verify/bus_transactions.h"

namespace citcat::test {
namespace {

constexpr const char* kOtherData = "the processor read other data than the replay";

class OrderedReadsTest : public testing::Test {
 protected:
  void captured(std::uint32_t address, std::uint8_t size = 1) {
    reads_.expect(uncounted(counted(BusOp::data_read, address, size, 0)));
  }
  /// The replay reads: what is wrong with that, or nothing.
  std::string read(std::uint32_t address, std::uint32_t size) {
    OrderedReads::Access access{PhysAddr{address}, size};
    while (!access.complete()) {
      if (reads_.empty()) return "not shown";
      const auto mismatch = reads_.observe(access);
      if (mismatch) return mismatch->reason;
    }
    return "";
  }

  OrderedReads reads_;
};

TEST_F(OrderedReadsTest, AWordIsReadByteByByteOnANarrowBusAndAtAnOddAddress) {
  captured(0x1001);
  captured(0x1002);
  captured(0x1004, 2);
  EXPECT_EQ(read(0x1001, 2), "");
  EXPECT_EQ(read(0x1004, 2), "");
  EXPECT_EQ(reads_.compared(), 3u);
  EXPECT_TRUE(reads_.empty());
}

TEST_F(OrderedReadsTest, AReadThatStandsTwiceIsNotWhatIsReadNext) {
  captured(0x1000);
  captured(0x1000);
  captured(0x1001);
  EXPECT_EQ(read(0x1000, 2), kOtherData);
}

TEST_F(OrderedReadsTest, AReadThatIsMissingIsNotPassedOver) {
  captured(0x1001);
  EXPECT_EQ(read(0x1000, 2), kOtherData);
}

TEST_F(OrderedReadsTest, AReadOfMoreThanTheAccessIsAnotherOne) {
  captured(0x1000, 2);
  EXPECT_EQ(read(0x1000, 1), kOtherData);
}

TEST_F(OrderedReadsTest, AMismatchShowsBothSides) {
  captured(0x1000);
  OrderedReads::Access access{PhysAddr{0x2000}, 2};
  const auto mismatch = reads_.observe(access);
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->expected->address, PhysAddr{0x1000});
  EXPECT_EQ(mismatch->found, "read of 2 bytes at 00002000");
}

TEST_F(OrderedReadsTest, OfACoprocessorsOperandAnyNumberOfReadsIsRight) {
  reads_.leave_to_coprocessor(PhysAddr{0x3000});
  reads_.leave_to_coprocessor(PhysAddr{0x3004});
  for (std::uint32_t i = 0; i < 8; ++i) captured(0x3000 + i);
  captured(0x1000);
  EXPECT_EQ(read(0x1000, 1), "");
  EXPECT_EQ(reads_.compared(), 1u);
}

TEST_F(OrderedReadsTest, OutsideACoprocessorsOperandNoneIs) {
  reads_.leave_to_coprocessor(PhysAddr{0x3000});
  captured(0x2fff);
  EXPECT_EQ(read(0x1000, 1), kOtherData);
}

}  // namespace
}  // namespace citcat::test
