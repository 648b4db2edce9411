// A few instructions of an 8088 compared with what its pins show, with queue status: each
// instruction that begins, fetches, and every read of data.

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>

#include "capture/import/import.h"
#include "replay/verify/fetch_order.h"
#include "replay/verify/verifier.h"

namespace citcat::test {
namespace {

constexpr std::uint32_t kPinCode = 0x1000, kReal = 0x2000, kByte = 0x3000, kOtherByte = 0x3010;

class PinComparison : public testing::Test {
 protected:
  PinComparison() {
    recording_.initial.model = CpuModel::i8088;
    recording_.initial.eip = kPinCode;
    for (Segment& s : recording_.initial.segment) s.limit = 0xffff;
    recording_.bus.bus_bytes = 1;
    recording_.bus.address_mask = 0xfffff;
    for (std::uint32_t i = 0; i < 0x20; ++i) {
      recording_.image.set(PhysAddr{kPinCode + i},
                           0x90);  // nop, also behind the end of the capture
      recording_.image.set(PhysAddr{kReal + i}, 0);
      recording_.image.set(PhysAddr{kByte + i}, static_cast<std::uint8_t>(i));
    }
  }
  /// The next instruction lies in memory, is fetched and begins.
  void executed(std::initializer_list<std::uint8_t> code) {
    for (const std::uint8_t byte : code) {
      recording_.image.set(PhysAddr{end_}, byte);
      shown(BusOp::code_read, end_++, {byte});
    }
    shown(BusOp::instruction_start, end_ - static_cast<std::uint32_t>(code.size()), code);
    ++recording_.totals.instruction_starts;
  }
  void shown(BusOp op, std::uint32_t address, std::initializer_list<std::uint8_t> bytes) {
    BusTransaction& t = bus_.evidence.emplace_back();
    t.index = bus_.evidence.size() - 1;
    t.op = op;
    t.address = PhysAddr{address};
    t.size = static_cast<std::uint8_t>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), t.data.begin());
  }
  void read(std::uint32_t address) { shown(BusOp::data_read, address, {0}); }

  /// Counts the instructions, of which the last one only begins.
  void count() {
    std::uint64_t begun = 0;
    for (BusTransaction& t : bus_.evidence) {
      if (t.op == BusOp::instruction_start) t.position = {begun++, 0};
      if (t.op == BusOp::instruction_start) t.flags |= kPositionKnown;
    }
    recording_.instructions = begun - 1;
  }

  /// Why the replay is not what the pins show; empty where it is.
  std::string disagreement() {
    Verifier verifier(recording_, bus_.read_evidence(), {});
    Replayer replayer(recording_, &verifier, {});
    const ReplayReport report = verifier.finish(replayer.run());
    compared_ = verifier.totals().reads;
    return report.divergence ? report.divergence->reason : "";
  }

  Recording recording_;
  ImportedRecording bus_;  ///< its evidence alone
  std::uint32_t end_ = kPinCode;
  std::uint64_t compared_ = 0;
};

TEST_F(PinComparison, ReadsAreThoseOfTheReplayInTheirOrder) {
  executed({0xa0, 0x00, 0x30});  // mov al, [kByte]
  read(kByte);
  executed({0x8b, 0x1e, 0x10, 0x30});  // mov bx, [kOtherByte]
  read(kOtherByte);
  read(kOtherByte + 1);
  executed({0x90});
  EXPECT_EQ(disagreement(), "");
  EXPECT_EQ(compared_, 3u);
}

TEST_F(PinComparison, AReadThatStandsTwiceIsNotOneOfTheReplay) {
  executed({0xa0, 0x00, 0x30});
  read(kByte);
  read(kByte);
  executed({0x8b, 0x1e, 0x10, 0x30});
  read(kOtherByte);
  read(kOtherByte + 1);
  executed({0x90});
  EXPECT_EQ(disagreement(), "the processor read other data than the replay");
}

/// Without a coprocessor a word of the operand is read, with one as much as it takes.
TEST_F(PinComparison, OfAnOperandOfTheCoprocessorAnyPartMayBeRead) {
  for (const std::uint32_t bytes : {2u, 4u}) {
    bus_.evidence.clear();
    recording_.totals.instruction_starts = 0;
    end_ = kPinCode;
    executed({0xd9, 0x06, 0x00, 0x20});  // fld dword [kReal]
    for (std::uint32_t i = 0; i < bytes; ++i) read(kReal + i);
    executed({0xa0, 0x00, 0x30});
    read(kByte);
    executed({0x90});
    EXPECT_EQ(disagreement(), "") << bytes;
    EXPECT_EQ(compared_, 1u);
  }
}

TEST_F(PinComparison, TheInstructionBehindTheLastOneIsWhereTheReplayEnds) {
  executed({0x90});
  executed({0x74, 0x02});  // je, which is not taken
  executed({0x90});
  count();
  EXPECT_EQ(disagreement(), "");
}

TEST_F(PinComparison, TheInstructionBehindTheLastOneTellsWhereThatLed) {
  executed({0x90});
  executed({0x74, 0x02});
  end_ += 2;  // as if it had been taken
  executed({0x90});
  count();
  EXPECT_EQ(disagreement(), "the processor went on elsewhere");
}

TEST_F(PinComparison, AnInstructionComesFromWhereCodeWasFetchedAnew) {
  executed({0x90});
  executed({0x90});
  shown(BusOp::code_read, end_ - 1, {0x90});  // stands there twice
  shown(BusOp::code_read, end_ - 1, {0x90});
  executed({0x90});
  EXPECT_EQ(disagreement(), FetchOrder::kReason);
}

}  // namespace
}  // namespace citcat::test
