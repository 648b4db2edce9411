// Lines that a replay moves, against those on the bus.

#include "replay/verify/cache_follower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "replay/session/replayer.h"

namespace citcat::test {
namespace {

constexpr std::uint32_t kFollowedWay = 4096, kFollowedLine = 16, kFirstLine = 0x10000;
constexpr unsigned kBurst = kLine;

class CacheFollowerTest : public testing::Test {
 protected:
  CacheFollowerTest() {
    recording_.bus.form = CacheForm::write_back;
    recording_.initial.ram_bytes = 1u << 20;
  }
  /// The bus shows the line filled.
  void fill(std::uint32_t line) { show(BusOp::data_read, line, kFollowedLine, kBurst); }
  void write_back(std::uint32_t line, std::uint8_t value) {
    show(BusOp::data_write, line, kFollowedLine, kBurst | kWriteBack);
    bus_.back().data.fill(0);
    std::fill_n(bus_.back().data.begin(), kFollowedLine, value);
  }
  /// Traffic without a line.
  void port() { show(BusOp::io_write, 0x80, 1, 0); }

  void begin() {
    follower_ = std::make_unique<CacheFollower>(
        recording_, [this] { return std::make_unique<Evidence>(bus_); }, *find_cache("write-back"));
    follower_->on_write_back([this](const CacheFollower::Line& line) { seen_.push_back(line); });
  }
  void read(std::uint32_t a) { follower_->read(PhysAddr{a}, 4, AccessKind::system, now_); }
  void write(std::uint32_t a) {
    const std::uint8_t bytes[4] = {};
    follower_->write(PhysAddr{a}, bytes, AccessKind::system, now_);
  }
  bool settle() {
    ++now_.instruction;
    return follower_->settle(now_);
  }

  std::unique_ptr<CacheFollower> follower_;
  std::vector<CacheFollower::Line> seen_;
  Position now_;

 private:
  class Evidence final : public EvidenceReader {
   public:
    explicit Evidence(const std::vector<BusTransaction>& bus) : bus_(bus) {}
    bool next(BusTransaction& out) override {
      if (next_ == bus_.size()) return false;
      out = bus_[next_++];
      return true;
    }

   private:
    const std::vector<BusTransaction>& bus_;
    std::size_t next_ = 0;
  };
  void show(BusOp op, std::uint32_t address, std::uint32_t size, unsigned flags) {
    BusTransaction t;
    t.index = bus_.size();
    t.op = op;
    t.address.value = address;
    t.size = static_cast<std::uint8_t>(size);
    t.flags = static_cast<std::uint16_t>(flags);
    bus_.push_back(t);
  }

  Recording recording_;
  std::vector<BusTransaction> bus_;
};

TEST_F(CacheFollowerTest, AgreesWithTheLinesThatTheBusShows) {
  fill(kFirstLine);
  fill(kFirstLine + kFollowedLine);
  begin();
  read(kFirstLine + 4);
  settle();
  read(kFirstLine + 8);
  settle();
  read(kFirstLine + kFollowedLine);
  settle();
  EXPECT_TRUE(follower_->next_lines(1, ~std::uint64_t{0}).empty());
}

TEST_F(CacheFollowerTest, TakesTheLinesOfOneInstructionInAnyOrder) {
  fill(kFirstLine + kFollowedLine);
  fill(kFirstLine);
  begin();
  read(kFirstLine);
  read(kFirstLine + kFollowedLine);
  EXPECT_NO_THROW(settle());
}

TEST_F(CacheFollowerTest, StopsAtALineThatTheBusDoesNotShow) {
  fill(kFirstLine);
  fill(kFirstLine + kFollowedLine);
  begin();
  read(kFirstLine);
  settle();
  read(kFirstLine + 2 * kFollowedLine);
  try {
    settle();
    FAIL() << "did not stop";
  } catch (const ReplayStopped& stop) {
    EXPECT_EQ(stop.transaction, 1u);
    EXPECT_EQ(stop.position, now_);
  }
}

TEST_F(CacheFollowerTest, EndsWithTheEvidence) {
  fill(kFirstLine);
  begin();
  read(kFirstLine);
  settle();
  read(kFirstLine + kFollowedLine);
  EXPECT_FALSE(settle());
  EXPECT_FALSE(follower_->closed());
}

TEST_F(CacheFollowerTest, MovesNoLineBehindItsLimit) {
  fill(kFirstLine);
  port();
  fill(kFirstLine + kFollowedLine);
  begin();
  follower_->set_limit(1);
  read(kFirstLine);
  settle();
  EXPECT_TRUE(follower_->at(1));
  read(kFirstLine + kFollowedLine);
  EXPECT_FALSE(settle());
  EXPECT_TRUE(follower_->closed());
}

TEST_F(CacheFollowerTest, TellsWhichLinesAreStillToBeMovedBeforeATransaction) {
  fill(kFirstLine);
  fill(kFirstLine + kFollowedLine);
  port();
  begin();
  EXPECT_FALSE(follower_->at(2));
  read(kFirstLine);
  settle();
  EXPECT_FALSE(follower_->at(2));
  read(kFirstLine + kFollowedLine);
  settle();
  EXPECT_TRUE(follower_->at(2));
}

TEST_F(CacheFollowerTest, HandsOnWhatIsWrittenBack) {
  fill(kFirstLine);
  for (std::uint32_t way = 1; way < 4; ++way) fill(kFirstLine + way * kFollowedWay);
  write_back(kFirstLine, 0x5a);
  fill(kFirstLine + 4 * kFollowedWay);
  begin();
  read(kFirstLine);
  settle();
  write(kFirstLine);
  settle();
  for (std::uint32_t way = 1; way < 5; ++way) {
    read(kFirstLine + way * kFollowedWay);
    settle();
  }
  ASSERT_EQ(seen_.size(), 1u);
  EXPECT_EQ(seen_[0].traffic.line.value, kFirstLine);
  EXPECT_EQ(seen_[0].transaction, 4u);
  EXPECT_EQ(seen_[0].data[7], 0x5a);
}

TEST_F(CacheFollowerTest, GoesOnFromWhereItIsPutBack) {
  fill(kFirstLine);
  fill(kFirstLine + kFollowedLine);
  begin();
  read(kFirstLine);
  settle();
  const CacheFollower::Checkpoint checkpoint = follower_->checkpoint();
  read(kFirstLine + 2 * kFollowedLine);
  EXPECT_THROW(settle(), ReplayStopped);
  follower_->restore(checkpoint);
  read(kFirstLine);
  EXPECT_NO_THROW(settle()) << "it is held";
  read(kFirstLine + kFollowedLine);
  EXPECT_NO_THROW(settle());
}

TEST_F(CacheFollowerTest, LogsAccessesBoundaryByBoundary) {
  begin();
  CacheLog log;
  follower_->ignore_bus(true);
  follower_->start_log(log, now_);
  read(kFirstLine);
  settle();
  read(kFirstLine + 4);
  settle();
  follower_->stop_log();
  read(kFirstLine + 8);
  ASSERT_EQ(log.size(), 4u);
  EXPECT_EQ(log[0].kind, CacheOp::Kind::read);
  EXPECT_EQ(log[0].address.value, kFirstLine);
  EXPECT_EQ(log[1].kind, CacheOp::Kind::boundary);
  EXPECT_EQ(log[2].address.value, kFirstLine + 4);
  EXPECT_EQ(log[3].kind, CacheOp::Kind::boundary);
}

}  // namespace
}  // namespace citcat::test
