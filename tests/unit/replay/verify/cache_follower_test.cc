// Lines that a replay moves, against those on the bus.

#include "replay/verify/cache_follower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "replay/session/replayer.h"

namespace citcat::test {
namespace {

constexpr std::uint32_t kWay = 4096, kLineBytes = 16, kFirst = 0x10000;
constexpr unsigned kBurst = kLine;

class CacheFollowerTest : public testing::Test {
 protected:
  CacheFollowerTest() {
    recording_.bus.form = CacheForm::write_back;
    recording_.initial.ram_bytes = 1u << 20;
  }
  /// The bus shows the line filled.
  void fill(std::uint32_t line) { show(BusOp::data_read, line, kLineBytes, kBurst); }
  void write_back(std::uint32_t line, std::uint8_t value) {
    show(BusOp::data_write, line, kLineBytes, kBurst | kWriteBack);
    bus_.back().data.fill(0);
    std::fill_n(bus_.back().data.begin(), kLineBytes, value);
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
  fill(kFirst);
  fill(kFirst + kLineBytes);
  begin();
  read(kFirst + 4);
  settle();
  read(kFirst + 8);
  settle();
  read(kFirst + kLineBytes);
  settle();
  EXPECT_TRUE(follower_->next_lines(1, ~std::uint64_t{0}).empty());
}

TEST_F(CacheFollowerTest, TakesTheLinesOfOneInstructionInAnyOrder) {
  fill(kFirst + kLineBytes);
  fill(kFirst);
  begin();
  read(kFirst);
  read(kFirst + kLineBytes);
  EXPECT_NO_THROW(settle());
}

TEST_F(CacheFollowerTest, StopsAtALineThatTheBusDoesNotShow) {
  fill(kFirst);
  fill(kFirst + kLineBytes);
  begin();
  read(kFirst);
  settle();
  read(kFirst + 2 * kLineBytes);
  try {
    settle();
    FAIL() << "did not stop";
  } catch (const ReplayStopped& stop) {
    EXPECT_EQ(stop.transaction, 1u);
    EXPECT_EQ(stop.position, now_);
  }
}

TEST_F(CacheFollowerTest, EndsWithTheEvidence) {
  fill(kFirst);
  begin();
  read(kFirst);
  settle();
  read(kFirst + kLineBytes);
  EXPECT_FALSE(settle());
  EXPECT_FALSE(follower_->closed());
}

TEST_F(CacheFollowerTest, MovesNoLineBehindItsLimit) {
  fill(kFirst);
  port();
  fill(kFirst + kLineBytes);
  begin();
  follower_->set_limit(1);
  read(kFirst);
  settle();
  EXPECT_TRUE(follower_->at(1));
  read(kFirst + kLineBytes);
  EXPECT_FALSE(settle());
  EXPECT_TRUE(follower_->closed());
}

TEST_F(CacheFollowerTest, TellsWhichLinesAreStillToBeMovedBeforeATransaction) {
  fill(kFirst);
  fill(kFirst + kLineBytes);
  port();
  begin();
  EXPECT_FALSE(follower_->at(2));
  read(kFirst);
  settle();
  EXPECT_FALSE(follower_->at(2));
  read(kFirst + kLineBytes);
  settle();
  EXPECT_TRUE(follower_->at(2));
}

TEST_F(CacheFollowerTest, HandsOnWhatIsWrittenBack) {
  fill(kFirst);
  for (std::uint32_t way = 1; way < 4; ++way) fill(kFirst + way * kWay);
  write_back(kFirst, 0x5a);
  fill(kFirst + 4 * kWay);
  begin();
  read(kFirst);
  settle();
  write(kFirst);
  settle();
  for (std::uint32_t way = 1; way < 5; ++way) {
    read(kFirst + way * kWay);
    settle();
  }
  ASSERT_EQ(seen_.size(), 1u);
  EXPECT_EQ(seen_[0].traffic.line.value, kFirst);
  EXPECT_EQ(seen_[0].transaction, 4u);
  EXPECT_EQ(seen_[0].data[7], 0x5a);
}

TEST_F(CacheFollowerTest, GoesOnFromWhereItIsPutBack) {
  fill(kFirst);
  fill(kFirst + kLineBytes);
  begin();
  read(kFirst);
  settle();
  const CacheFollower::Checkpoint checkpoint = follower_->checkpoint();
  read(kFirst + 2 * kLineBytes);
  EXPECT_THROW(settle(), ReplayStopped);
  follower_->restore(checkpoint);
  read(kFirst);
  EXPECT_NO_THROW(settle()) << "it is held";
  read(kFirst + kLineBytes);
  EXPECT_NO_THROW(settle());
}

TEST_F(CacheFollowerTest, LogsAccessesBoundaryByBoundary) {
  begin();
  CacheLog log;
  follower_->ignore_bus(true);
  follower_->start_log(log, now_);
  read(kFirst);
  settle();
  read(kFirst + 4);
  settle();
  follower_->stop_log();
  read(kFirst + 8);
  ASSERT_EQ(log.size(), 4u);
  EXPECT_EQ(log[0].kind, CacheOp::Kind::read);
  EXPECT_EQ(log[0].address.value, kFirst);
  EXPECT_EQ(log[1].kind, CacheOp::Kind::boundary);
  EXPECT_EQ(log[2].address.value, kFirst + 4);
  EXPECT_EQ(log[3].kind, CacheOp::Kind::boundary);
}

}  // namespace
}  // namespace citcat::test
