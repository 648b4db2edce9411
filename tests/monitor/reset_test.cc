// Resets of the machine, told by hand what an emulator tells of them.

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/monitor/recorder_fixture.h"

namespace citcat::monitor {
namespace {

class ResetTest : public RecorderFixture {
 protected:
  static constexpr std::uint32_t kCode = 0x10000;

  void SetUp() override {
    RecorderFixture::SetUp();
    recorder_.emplace(memory_, *sink_, log_, registers_, CacheModel::none);
  }
  void begin(std::vector<std::uint8_t> bytes) {
    first_ = insn(kCode, std::move(bytes));
    begin_in_flight(*recorder_, first_);
  }
  void log(const std::string& text) {
    ASSERT_EQ(write(log_file_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// What it logs of the registers, which the reset takes from it.
  static std::string reset_at(const std::string& ip, const std::string& eax) {
    return "CPU Reset (CPU 0)\nEAX=" + eax + " EBX=00000000 ECX=00000000 EDX=00000000\nEIP=" + ip +
           " EFL=00000002 [-------] CPL=0 II=0 A20=1 SMM=0 HLT=0\n"
           "CS =0008 00000000 ffffffff 00cf9b00\nEFER=0000000000000000\n";
  }
  /// The first instruction behind the reset starts; what has been shown before it is fetched.
  std::vector<Seen> go_on() {
    registers_.state_ = {};
    registers_.state_.cr0 = 0x60000010;
    registers_.state_.segment[1] = {0xf000, 0xffff0000, 0xffff, 0x9b00};
    registers_.state_.gpr[2] = 0x673;
    registers_.state_.ip = 0xfff0;
    next_ = insn(0xfffffff0, {0x90});
    next_.physical = GuestMemory::kNotInRam;
    recorder_->start(next_);
    auto records = seen();
    std::erase_if(records,
                  [](const Seen& s) { return s.type == static_cast<int>(RecordType::code_read); });
    return records;
  }

  Insn first_, next_;
  std::optional<Recorder> recorder_;
};

TEST_F(ResetTest, IsShownBehindTheInstructionThatAskedForIt) {
  registers_.state_.gpr[0] = 0xfe;
  begin({0xe6, 0x64});
  log(reset_at("00010002", "000000fe") + reset_at("0000fff0", "00000000"));
  const auto records = go_on();
  ASSERT_TRUE(recorder_->active());
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].type, static_cast<int>(RecordType::io_write));
  EXPECT_EQ(records[0].data[0], 0xfe);
  EXPECT_EQ(records[1].type, static_cast<int>(RecordType::reset));
  EXPECT_EQ(records[1].data[0], 1);
  EXPECT_EQ(recorder_->instructions(), 1u);
}

TEST_F(ResetTest, LeavesThePortReadBeforeItWithItsValue) {
  begin({0xe4, 0x64});
  log(reset_at("00010002", "0000001c"));
  const auto records = go_on();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].type, static_cast<int>(RecordType::io_read));
  EXPECT_EQ(records[0].data[0], 0x1c);
}

TEST_F(ResetTest, OfAnInstructionThatIsToGoOnIsBeforeItsEnd) {
  begin({0xe4, 0x64});
  log(reset_at("00010000", "00000000"));
  const auto records = go_on();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(recorder_->instructions(), 0u);
}

/// INT3 without a table: three faults in the log, of which the last is no event.
TEST_F(ResetTest, BehindAShutdownIsShownWithIt) {
  begin({0xcc});
  const auto event = [](const char* vector, const char* code, const char* software) {
    return std::string("     0: v=") + vector + " e=" + code + " i=" + software +
           " cpl=0 IP=0008:00010000 pc=00010000 SP=0010:00000000 CR2=00000000\n"
           "CS =0008 00000000 ffffffff 00cf9b00\nIDT=     00000000 00000000\n"
           "CR0=00000001 CR2=00000000 CR3=00000000 CR4=00000000\nEFER=0000000000000000\n";
  };
  log(event("03", "0000", "1") + "check_exception old: 0xffffffff new 0xd\n" +
      event("0d", "001a", "0") + "check_exception old: 0xd new 0xd\n" + event("08", "0000", "0") +
      "check_exception old: 0x8 new 0xd\nTriple fault\n" + reset_at("00010000", "00000000"));
  const auto records = go_on();
  ASSERT_TRUE(recorder_->active());
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].type, static_cast<int>(RecordType::shutdown));
  EXPECT_EQ(records[1].type, static_cast<int>(RecordType::reset));
  EXPECT_EQ(records[1].data[0], 2);
  EXPECT_EQ(recorder_->instructions(), 0u);
}

}  // namespace
}  // namespace citcat::monitor
