// Stores of one instruction whose captured order is another, of a capture that counts instructions.

#include "replay/verify/order_of_stores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "capture/import/import.h"
#include "replay/verify/verifier.h"
#include "unit/replay/machine/paged_guest.h"
#include "unit/replay/verify/bus_transactions.h"

namespace citcat::test {
namespace {

constexpr std::uint64_t kPush = 1, kOtherCode = 2;  // identities
constexpr Position kNow{7, 0}, kLater{9, 0};

class OrderOfStoresTest : public testing::Test {
 protected:
  /// The replay makes dwords, one after another upward; the bus shows them as these transactions.
  std::string make(std::uint64_t identity, const std::vector<std::uint64_t>& transactions,
                   Position now = kNow, AccessKind first = AccessKind::data) {
    std::uint32_t at = 0x1000;
    for (const std::uint64_t index : transactions) {
      order_.begin(at == 0x1000 ? first : AccessKind::data, PhysAddr{at}, 4);
      const std::string reason = show(at, 4, index);
      if (!reason.empty()) return reason;
      at += 4;
    }
    return complete(identity, now);
  }
  /// A dword that goes over the bus in two parts.
  std::string make_in_parts(std::uint64_t low, std::uint64_t high) {
    order_.begin(AccessKind::data, PhysAddr{0x1002}, 4);
    std::string reason = show(0x1002, 2, low);
    if (reason.empty()) reason = show(0x1004, 2, high);
    return reason.empty() ? complete(kPush, kNow) : reason;
  }
  std::string complete(std::uint64_t identity, Position now) {
    const auto mismatch = order_.complete(identity, now);
    return mismatch ? mismatch->reason : "";
  }
  std::string show(std::uint32_t address, std::uint8_t size, std::uint64_t index) {
    BusTransaction t = counted(BusOp::data_write, address, size, kNow.instruction);
    t.index = index;
    const auto mismatch = order_.made(t);
    return mismatch ? mismatch->reason : "";
  }

  OrderOfStores order_;
};

TEST_F(OrderOfStoresTest, MayBeAnyAtFirstAndIsTheSameFromThenOn) {
  EXPECT_EQ(make(kPush, {3, 1, 2}), "");
  EXPECT_EQ(make(kPush, {6, 4, 5}), "");
  EXPECT_NE(make(kPush, {7, 8, 9}), "");
}

TEST_F(OrderOfStoresTest, IsAnotherOfAnotherInstructionOrOfOtherStores) {
  EXPECT_EQ(make(kPush, {2, 1}), "");
  EXPECT_EQ(make(kOtherCode, {3, 4}), "");
  EXPECT_EQ(make(kPush, {5, 6, 7}), "") << "it stores more";
  EXPECT_NE(make(kOtherCode, {9, 8}), "");
}

TEST_F(OrderOfStoresTest, IsThatOfTheProgramBetweenInstructions) {
  EXPECT_EQ(make(kPush, {5}), "");
  EXPECT_NE(make(kPush, {4}, kLater), "");
}

/// Not every iteration is told to be complete.
TEST_F(OrderOfStoresTest, IsThatOfTheProgramBetweenIterations) {
  const auto show_of = [&](std::uint32_t iteration, std::uint64_t index) {
    BusTransaction t = counted(BusOp::data_write, 0x1000 + 4 * iteration, 4, kNow.instruction);
    t.position.iteration = iteration;
    t.index = index;
    order_.begin(AccessKind::data, t.address, 4);
    return order_.made(t).has_value();
  };
  EXPECT_FALSE(show_of(3, 10));
  EXPECT_FALSE(show_of(4, 12));
  EXPECT_TRUE(show_of(5, 11));
}

TEST_F(OrderOfStoresTest, OfPartsIsTheSameEachTime) {
  EXPECT_EQ(make_in_parts(1, 2), "");
  EXPECT_EQ(make_in_parts(3, 4), "");
  EXPECT_NE(make_in_parts(6, 5), "");
}

TEST_F(OrderOfStoresTest, OfPartsMayBeDownward) {
  EXPECT_EQ(make_in_parts(2, 1), "");
  EXPECT_EQ(make_in_parts(4, 3), "");
  EXPECT_NE(make_in_parts(5, 6), "");
}

TEST_F(OrderOfStoresTest, OfPartsIsUpwardWhereBlocksHaveShownIt) {
  order_.note_upward(PhysAddr{0x2002}, 4);
  EXPECT_NE(make_in_parts(2, 1), "");
}

TEST_F(OrderOfStoresTest, LeavesMarksInPageTablesFreeButForTheLastPlace) {
  EXPECT_EQ(make(kPush, {1, 2, 3}, kNow, AccessKind::walk), "");
  EXPECT_EQ(make(kPush, {5, 4, 6}, kNow, AccessKind::walk), "");
  EXPECT_NE(make(kPush, {9, 7, 8}, kNow, AccessKind::walk), "");
}

/// In a switch of tasks the new address space is read when the old task has been saved.
TEST_F(OrderOfStoresTest, LeavesMarksBehindAllStoresFree) {
  order_.begin(AccessKind::system, PhysAddr{0x1000}, 4);
  EXPECT_EQ(show(0x1000, 4, 1), "");
  order_.begin(AccessKind::walk, PhysAddr{0x2000}, 4);
  EXPECT_EQ(show(0x2000, 4, 2), "");
  EXPECT_EQ(complete(kPush, kNow), "");
}

/// PUSHA twice, and a bus that shows each of its stores.
class Pushes : public testing::TestWithParam<bool> {
 protected:
  Pushes() {
    for (int i = 0; i < 2; ++i) guest_.add({0x60});
    for (int i = 0; i < 3; ++i) guest_.add({0x90});
    guest_.recording.instructions = 4;
    guest_.recording.bus = {CacheForm::none, 0, 4, 0xffffffff};
    Stores stores(bus_.evidence);
    ReplayOptions options;
    options.path = ExecutionPath::instructions;
    Replayer(guest_.recording, &stores, options).run();
  }
  class Stores final : public Observer {
   public:
    explicit Stores(std::vector<BusTransaction>& shown) : shown_(shown) {}
    void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind, Position now) override {
      BusTransaction t = test::counted(BusOp::data_write, a.u32(),
                                       static_cast<std::uint8_t>(bytes.size()), now.instruction);
      t.index = shown_.size();
      std::copy(bytes.begin(), bytes.end(), t.data.begin());
      shown_.push_back(t);
    }

   private:
    std::vector<BusTransaction>& shown_;
  };
  /// Exchanges two stores of PUSHA number `n`.
  void exchange(std::size_t n) {
    BusTransaction& a = bus_.evidence[8 * n + 2];
    BusTransaction& b = bus_.evidence[8 * n + 5];
    std::swap(a, b);
    std::swap(a.index, b.index);
  }
  std::string disagreement() {
    VerifierOptions verifying;
    verifying.plain = GetParam();
    Verifier verifier(guest_.recording, bus_.read_evidence(), verifying);
    ReplayOptions options;
    options.path = GetParam() ? ExecutionPath::blocks : ExecutionPath::instructions;
    Replayer replayer(guest_.recording, &verifier, options);
    const ReplayReport report = verifier.finish(replayer.run());
    return report.divergence ? report.divergence->reason : "";
  }

  PagedGuest guest_;
  ImportedRecording bus_;  ///< its evidence alone
};

TEST_P(Pushes, AgreeInTheOrderOfTheReplay) {
  ASSERT_EQ(bus_.evidence.size(), 16u);
  EXPECT_EQ(disagreement(), "");
}

TEST_P(Pushes, AgreeInAnotherOrderThatIsTheSameEachTime) {
  exchange(0);
  exchange(1);
  EXPECT_EQ(disagreement(), "");
}

TEST_P(Pushes, DoNotAgreeWhereOneIsInAnotherOrder) {
  exchange(1);
  EXPECT_EQ(disagreement(),
            "the processor wrote memory in another order than when it did the same before");
}

INSTANTIATE_TEST_SUITE_P(, Pushes, testing::Bool(),
                         [](const auto& plain) { return plain.param ? "InBlocks" : "OneByOne"; });

}  // namespace
}  // namespace citcat::test
