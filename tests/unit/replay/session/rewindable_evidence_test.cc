#include "replay/session/rewindable_evidence.h"

#include <gtest/gtest.h>

#include <random>

namespace citcat {
namespace {

constexpr std::uint64_t kCount = 5000;

class Numbers final : public EvidenceReader {
 public:
  bool next(BusTransaction& out) override {
    if (at_ == kCount) return false;
    out = {};
    out.index = 1000 + at_++;
    return true;
  }

 private:
  std::uint64_t at_ = 0;
};

std::unique_ptr<EvidenceReader> open_numbers() { return std::make_unique<Numbers>(); }

TEST(RewindableEvidence, GoesOnFromWhereverItWasTakenTo) {
  RewindableEvidence evidence(open_numbers);
  std::mt19937 random(7);
  std::uint64_t farthest = 0, at = 0;
  for (int i = 0; i < 2000; ++i) {
    switch (random() % 8) {
      case 0:
        evidence.hold();
        break;
      case 1:
        evidence.release();
        break;
      case 2:
      case 3:
        // Also behind what was read since an earlier place was gone back to.
        at = random() % (farthest + 1);
        evidence.seek(at);
        break;
      default:
        break;
    }
    EXPECT_EQ(evidence.position(), at);
    for (std::uint64_t n = random() % 200; n > 0 && at < kCount; --n) {
      BusTransaction t;
      ASSERT_TRUE(evidence.next(t));
      ASSERT_EQ(t.index, 1000 + at);
      ++at;
      EXPECT_EQ(evidence.next_transaction(), 1000 + at);
    }
    farthest = std::max(farthest, at);
  }
  EXPECT_EQ(farthest, kCount);
}

}  // namespace
}  // namespace citcat
