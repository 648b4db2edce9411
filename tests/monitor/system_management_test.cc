// SMIs and RSM, told by hand what an emulator tells of them.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/monitor/recorder_fixture.h"

namespace citcat::monitor {
namespace {

class SystemManagementTest : public RecorderFixture {
 protected:
  static constexpr std::uint32_t kCode = 0x10000, kSmbase = 0x30000, kSmram = 0xa0000;
  static constexpr int kSmi = static_cast<int>(RecordType::smi),
                       kWrite = static_cast<int>(RecordType::data_write),
                       kRead = static_cast<int>(RecordType::data_read);

  void SetUp() override {
    RecorderFixture::SetUp();
    registers_.memory_ = &memory_;
    recorder_.emplace(memory_, *sink_, log_, registers_, CacheModel::none);
  }
  void begin(std::vector<std::uint8_t> bytes) {
    first_ = insn(kCode, std::move(bytes));
    begin_in_flight(*recorder_, first_);
  }
  void log(const std::string& event, const std::string& ip, const std::string& a20 = "1",
           const std::string& ecx = "00000000") {
    const std::string text = "SMM: " + event + "\nEAX=00000000 EBX=00000000 ECX=" + ecx +
                             " EDX=00000000\nEIP=" + ip +
                             " EFL=00000002 [-------] CPL=0 II=0 A20=" + a20 +
                             " SMM=0 HLT=0\nCS =0008 00000000 ffffffff 00cf9b00\n"
                             "CR0=00000001 CR2=00000000 CR3=00000000 CR4=00000000\n"
                             "EFER=0000000000000000\n";
    ASSERT_EQ(write(log_file_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// The handler's first instruction starts; what has been shown until then, without fetches.
  std::vector<Seen> handle(std::uint32_t smbase, std::vector<std::uint8_t> bytes = {0x90}) {
    registers_.state_.cr0 = 0;
    registers_.state_.smm = true;
    registers_.state_.segment[1] = {smbase >> 4, smbase, 0xffffffff, 0x9300};
    registers_.state_.ip = 0x8000;
    handler_ = insn(smbase + 0x8000, std::move(bytes));
    recorder_->start(handler_);
    return without_fetches();
  }
  std::vector<Seen> without_fetches() {
    auto records = seen();
    std::erase_if(records,
                  [](const Seen& s) { return s.type == static_cast<int>(RecordType::code_read); });
    return records;
  }
  /// A dword of the saved state.
  void save(std::uint32_t address, std::uint32_t value) {
    std::memcpy(ram_ + address, &value, sizeof value);
  }
  static std::uint32_t dword(const Seen& record) {
    std::uint32_t value = 0;
    std::memcpy(&value, record.data.data(), sizeof value);
    return value;
  }

  Insn first_, handler_, next_;
  std::optional<Recorder> recorder_;
};

TEST_F(SystemManagementTest, SavesAllOfTheStateFromTheTop) {
  begin({0xe6, 0xb2});
  save(kSmbase + 0xfefc, 0x20064);
  save(kSmbase + 0xfffc, 0x12345678);
  log("enter", "00010002");
  const auto records = handle(kSmbase);
  ASSERT_TRUE(recorder_->active());
  ASSERT_EQ(records.size(), 2u + 128);
  EXPECT_EQ(records[0].type, static_cast<int>(RecordType::io_write));
  EXPECT_EQ(records[1].type, kSmi);
  EXPECT_EQ(records[1].instructions, 1u);
  for (unsigned n = 0; n < 128; ++n) {
    EXPECT_EQ(records[2 + n].type, kWrite);
    EXPECT_EQ(records[2 + n].address, kSmbase + 0xfffc - 4 * n);
  }
  EXPECT_EQ(dword(records[2]), 0x12345678u);
  EXPECT_EQ(recorder_->instructions(), 1u);
}

TEST_F(SystemManagementTest, HasAttributesInTheUpperHalvesOfTheOtherMap) {
  begin({0xe6, 0xb2});
  save(kSmbase + 0xfefc, 0x20000);
  save(kSmbase + 0xfe00 + 0x190, 0xc09b);  // CS
  save(kSmbase + 0xfe00 + 0x1ac, 0x0008);
  log("enter", "00010002");
  const auto records = handle(kSmbase);
  ASSERT_EQ(records.size(), 2u + 128);
  const auto& attributes = records[2 + (0x1fc - 0x190) / 4];
  EXPECT_EQ(attributes.address, kSmbase + 0xff90);
  EXPECT_EQ(dword(attributes), 0xc09b0008u);
  // RSM needs them where they were.
  EXPECT_EQ(ram_[kSmbase + 0xff90], 0x9b);
}

TEST_F(SystemManagementTest, EndsWithAnRsmThatLoadsTheState) {
  begin({0xe6, 0xb2});
  save(kSmram + 0xfefc, 0x20064);
  log("enter", "00010002");
  ASSERT_EQ(handle(kSmram, {0x0f, 0xaa}).size(), 2u + 128);
  EXPECT_TRUE(memory_.is_readable(kSmram, 4));
  log("after RSM", "00010002");
  registers_.state_ = FixedRegisters().state_;
  registers_.state_.ip = kCode + 2;
  next_ = insn(kCode + 2, {0x90});
  recorder_->start(next_);
  const auto records = without_fetches();
  ASSERT_TRUE(recorder_->active());
  ASSERT_EQ(records.size(), 128u);
  EXPECT_EQ(records[0].type, kRead);
  EXPECT_EQ(records[0].address, kSmram + 0xfffc);
  EXPECT_EQ(records[0].instructions, 1u);
  EXPECT_EQ(recorder_->instructions(), 2u);
  EXPECT_FALSE(memory_.is_readable(kSmram, 4));
}

TEST_F(SystemManagementTest, ComesBetweenTwoIterations) {
  begin({0xf3, 0xaa});
  const std::uint8_t stored[1] = {0};
  recorder_->access(first_, true, 0x2000, 0x2000, false, stored);
  (void)seen();
  log("enter", "00010000", "1", "00000005");
  const auto records = handle(kSmbase);
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records[0].type, kSmi);
  EXPECT_EQ(records[0].instructions, 0u);
  EXPECT_EQ(records[0].iterations, 1u);
}

TEST_F(SystemManagementTest, ReturnsBehindARepThatIsUsedUp) {
  begin({0xf3, 0xaa});
  const std::uint8_t stored[1] = {0};
  recorder_->access(first_, true, 0x2000, 0x2000, false, stored);
  save(kSmbase + 0xfefc, 0x20064);
  save(kSmbase + 0xff78, kCode);
  save(kSmbase + 0xff7c, 0);
  log("enter", "00010000");
  (void)handle(kSmbase);
  ASSERT_TRUE(recorder_->active());
  EXPECT_EQ(recorder_->instructions(), 1u);
  EXPECT_EQ(ram_[kSmbase + 0xff78], 2);
  EXPECT_EQ(ram_[kSmbase + 0xff7a], 1);
}

TEST_F(SystemManagementTest, IsRefusedWhereTheEmulatorIsAnotherThanAProcessor) {
  begin({0xe6, 0xb2});
  log("enter", "00010002", "0");
  (void)handle(kSmbase);
  EXPECT_FALSE(recorder_->active());
}

TEST_F(SystemManagementTest, IsRefusedWhereTheStateIsNotInRam) {
  begin({0xe6, 0xb2});
  log("enter", "00010002");
  (void)handle(0xd0000);
  EXPECT_FALSE(recorder_->active());
}

TEST_F(SystemManagementTest, StopsTheCacheOfItsPage) {
  recorder_.emplace(memory_, *sink_, log_, registers_, CacheModel::pentium);
  begin({0xe6, 0xb2});
  recorder_->bus().read(kSmbase + 0xf000, std::span(ram_ + kSmbase + 0xf000, 4));
  log("enter", "00010002");
  const auto records = handle(kSmbase);
  ASSERT_GE(records.size(), 128u);
  EXPECT_EQ(records.back().type, kWrite);
  EXPECT_EQ(records.back().size, 4);
  recorder_->bus().read(kSmbase + 0xf000, std::span(ram_ + kSmbase + 0xf000, 4));
  EXPECT_EQ(seen().back().size, 4);
}

}  // namespace
}  // namespace citcat::monitor
