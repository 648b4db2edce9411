// The recorder at XSAVE and its relatives: what is shown where the emulator stores other
// components, and other names of them, than a processor.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "driver-kmod/uapi/citcat_dump.h"
#include "tests/monitor/recorder_fixture.h"

namespace citcat::monitor {
namespace {

constexpr std::uint8_t kXsave = 4, kXrstor = 5, kXsaveopt = 6;

/// Flat code of 32 bits at 0x5000 on a processor with long mode; the area is at 0x8000.
class ExtendedStateTest : public RecorderFixture {
 protected:
  static constexpr std::uint32_t kCode = 0x5000, kArea = 0x8000, kWindow = 0x100000;
  static constexpr std::uint8_t kOld = 0xa5;  ///< in the area before

  void SetUp() override {
    RecorderFixture::SetUp();
    LoggedState& now = registers_.state_;
    now.cr4 = kCr4OsXsave;
    now.ip = kCode;
    now.segment[1] = {8, 0, ~0u, 0x00cf9a00};
    registers_.long_mode_ = LongModeRegisters{};
    std::fill_n(ram_ + kArea, 576, kOld);
    put(kArea + kHeaderAt, 0);
    put(kArea + kHeaderAt + 4, 0);
    std::fill_n(ram_ + kArea + kHeaderAt + 8, 56, std::uint8_t{0});
    recorder_.emplace(memory_, *sink_, log_, registers_, CacheModel::none);
    recorder_->facts().xcr0 = 3;
  }

  void put(std::uint32_t at, std::uint32_t value) { std::memcpy(ram_ + at, &value, 4); }
  std::uint32_t dword_at(std::uint32_t at) const {
    std::uint32_t value = 0;
    std::memcpy(&value, ram_ + at, 4);
    return value;
  }
  /// The instruction with EDX:EAX and ECX starts.
  void begin(std::vector<std::uint8_t> bytes, std::uint32_t eax, std::uint32_t ecx = 0) {
    insn_ = insn(kCode, std::move(bytes));
    registers_.state_.gpr[0] = eax;
    registers_.state_.gpr[1] = ecx;
    registers_.state_.gpr[2] = 0;
    recorder_->begin(insn_, 0);
    recorder_->start(insn_);
    (void)seen();
  }
  /// XRSTOR of an area whose header names these components starts. What it reads is still to be
  /// seen.
  void begin_restore(std::uint32_t names) {
    put(kArea + kHeaderAt, names);
    insn_ = insn(kCode, area_operand(kXrstor));
    registers_.state_.gpr[0] = 3;
    recorder_->begin(insn_, 0);
    (void)seen();
    recorder_->start(insn_);
  }
  /// It has ended.
  void end() {
    next_ = insn(kCode + insn_.size, {0x90});
    registers_.state_.ip = next_.linear;
    recorder_->start(next_);
  }
  /// As QEMU stores all components and names them, at an operand of [8000h].
  void emulate_save(std::uint32_t components, std::uint16_t control, std::uint8_t xmm0) {
    if ((components & 1) != 0) {
      std::fill_n(ram_ + kArea, 24, std::uint8_t{0});
      std::memcpy(ram_ + kArea, &control, sizeof control);
      ram_[kArea + 6] = ram_[kArea + 7] = kOld;  // the opcode is left out
      for (unsigned n = 0; n < 8; ++n) std::fill_n(ram_ + kArea + 32 + 16 * n, 10, std::uint8_t{0});
    }
    if ((components & 2) != 0) {
      put(kArea + 24, 0x1f80);
      put(kArea + 28, 0xffff);
      std::fill_n(ram_ + kArea + 160, 128, std::uint8_t{0});
      ram_[kArea + 160] = xmm0;
    }
    put(kArea + kHeaderAt, dword_at(kArea + kHeaderAt) | components);
  }
  std::vector<std::uint8_t> area_operand(std::uint8_t reg) {
    return {0x0f, 0xae, static_cast<std::uint8_t>(reg << 3 | 5), 0x00, 0x80, 0x00, 0x00};
  }
  bool is_old(std::uint32_t first, std::uint32_t end) const {
    return std::all_of(ram_ + kArea + first, ram_ + kArea + end,
                       [](std::uint8_t b) { return b == kOld; });
  }

  /// Offsets of the dwords of the area that were read or written since it was last asked for.
  std::vector<std::uint32_t> shown(RecordType type) {
    std::vector<std::uint32_t> out;
    for (const Seen& s : seen()) {
      const std::uint32_t offset = s.address - kArea;
      if (s.type == static_cast<int>(type) && offset < 576) out.push_back(offset);
    }
    return out;
  }
  /// The offsets of all dwords from `first` on.
  static std::vector<std::uint32_t> dwords(
      std::initializer_list<std::pair<std::uint32_t, std::uint32_t>> ranges) {
    std::vector<std::uint32_t> out;
    for (const auto& [first, end] : ranges)
      for (std::uint32_t at = first; at < end; at += 4) out.push_back(at);
    return out;
  }

  Insn insn_, next_;
  std::optional<Recorder> recorder_;
};

TEST_F(ExtendedStateTest, XsaveStoresWhatIsAskedForAndKeepsOtherNames) {
  put(kArea + kHeaderAt, 1);  // XSTATE_BV names the x87 unit
  begin(area_operand(kXsave), 2);
  emulate_save(2, 0, 0x77);
  end();
  EXPECT_EQ(shown(RecordType::data_write), dwords({{24, 32}, {160, 288}, {512, 520}}));
  EXPECT_EQ(dword_at(kArea + kHeaderAt), 3u);
  EXPECT_TRUE(is_old(0, 24));
  EXPECT_TRUE(is_old(32, 160));
}

TEST_F(ExtendedStateTest, XsaveReadsItsHeaderAsItWas) {
  put(kArea + kHeaderAt, 1);
  begin(area_operand(kXsave), 2);
  emulate_save(2, 0, 0x77);
  end();
  bool read = false;
  for (const Seen& s : seen())
    if (s.type == static_cast<int>(RecordType::data_read) && s.address == kArea + kHeaderAt) {
      read = true;
      EXPECT_EQ(s.data[0], 1);
    }
  EXPECT_TRUE(read);
}

TEST_F(ExtendedStateTest, XsaveStoresAllAndNamesWhatIsInUse) {
  begin(area_operand(kXsave), ~0u);
  emulate_save(3, 0x37f, 0x77);
  end();
  EXPECT_EQ(shown(RecordType::data_write), dwords({{0, 288}, {512, 520}}));
  EXPECT_EQ(dword_at(kArea + kHeaderAt), 2u) << "the x87 unit is as FNINIT makes it";
  EXPECT_EQ(ram_[kArea + 42], 0) << "behind a register";
  EXPECT_EQ(ram_[kArea + 6], 0) << "the last opcode";
}

TEST_F(ExtendedStateTest, XsaveoptLeavesOutWhatIsInItsInitialConfiguration) {
  begin(area_operand(kXsaveopt), 3);
  emulate_save(3, 0x37f, 0);
  end();
  EXPECT_EQ(shown(RecordType::data_write), dwords({{24, 32}, {512, 520}})) << "MXCSR is stored";
  EXPECT_EQ(dword_at(kArea + kHeaderAt), 0u);
  EXPECT_TRUE(is_old(0, 24));
  EXPECT_TRUE(is_old(160, 288));
}

TEST_F(ExtendedStateTest, XsaveoptStoresAnX87UnitWithAnotherControlWord) {
  begin(area_operand(kXsaveopt), 1);
  emulate_save(1, 0x27f, 0);
  end();
  EXPECT_EQ(shown(RecordType::data_write), dwords({{0, 24}, {32, 160}, {512, 520}}));
  EXPECT_EQ(dword_at(kArea + kHeaderAt), 1u);
}

TEST_F(ExtendedStateTest, WhatIsNotInXcr0IsNotStored) {
  recorder_->facts().xcr0 = 1;
  begin(area_operand(kXsave), 3);
  emulate_save(1, 0x27f, 0);
  end();
  EXPECT_EQ(shown(RecordType::data_write), dwords({{0, 24}, {32, 160}, {512, 520}}));
}

TEST_F(ExtendedStateTest, XrstorReadsWhatItsHeaderNamesAndMxcsr) {
  begin_restore(2);
  EXPECT_EQ(shown(RecordType::data_read), dwords({{512, 536}, {24, 28}, {160, 288}}));
  end();
  EXPECT_TRUE(recorder_->active());
}

TEST_F(ExtendedStateTest, XrstorReadsNoMoreThanAHeaderThatItRefuses) {
  begin_restore(4);
  EXPECT_EQ(shown(RecordType::data_read), dwords({{512, 536}}));
}

TEST_F(ExtendedStateTest, XrstorOfTheInitialConfigurationClearsThePointers) {
  begin({0xdd, 0x05, 0x00, 0x90, 0x00, 0x00}, 3);  // FLD [9000h]
  recorder_->access(insn_, false, 0x9000, 0x9000, false, {ram_ + 0x9000, 8});
  // XRSTOR of a header without names.
  const Insn restore = insn(kCode + 6, area_operand(kXrstor)),
             save = insn(kCode + 13, area_operand(kXsave)), last = insn(kCode + 20, {0x90});
  for (const Insn* const next : {&restore, &save, &last}) {
    if (next == &last) emulate_save(3, 0x37f, 0);
    registers_.state_.ip = next->linear;
    recorder_->start(*next);
  }
  EXPECT_EQ(dword_at(kArea + 8), 0u);
  EXPECT_EQ(dword_at(kArea + kHeaderAt), 0u);
}

TEST_F(ExtendedStateTest, XsetbvIsFollowed) {
  begin({0x0f, 0x01, 0xd1}, 1);
  end();
  EXPECT_TRUE(recorder_->active());
  EXPECT_EQ(recorder_->facts().xcr0, 1u);
}

TEST_F(ExtendedStateTest, AvxInXcr0EndsARecording) {
  begin({0x0f, 0x01, 0xd1}, 7);
  EXPECT_TRUE(recorder_->active());
  end();
  EXPECT_FALSE(recorder_->active());
}

TEST_F(ExtendedStateTest, NoRecordingBeginsWithAvxInXcr0) {
  recorder_->facts().xcr0 = 7;
  begin({0x90}, 0);
  EXPECT_FALSE(recorder_->active());
}

TEST_F(ExtendedStateTest, WhatNoReplayerHoldsEndsARecordingWhereItIsExecuted) {
  for (const auto& [bytes, number] : {std::pair{std::vector<std::uint8_t>{0x0f, 0x01, 0xd0}, 1u},
                                      {{0x0f, 0xc7, 0x25, 0, 0x80, 0, 0}, 0u}}) {
    recorder_.emplace(memory_, *sink_, log_, registers_, CacheModel::none);
    registers_.state_.ip = kCode;
    begin(bytes, 3, number);
    EXPECT_TRUE(recorder_->active()) << "it may be refused yet";
    end();
    EXPECT_FALSE(recorder_->active());
  }
}

TEST_F(ExtendedStateTest, ProcessorsWithoutLongModeHaveNoXsave) {
  registers_.long_mode_.reset();
  begin(area_operand(kXsave), 3);
  emulate_save(3, 0x37f, 0);
  end();
  EXPECT_FALSE(recorder_->active());
}

/// Readers of the driver's dump take XCR0 for what CPUID has.
TEST_F(ExtendedStateTest, TheDriversDumpIsNotBegunWithWhereItTellsAnotherXcr0) {
  std::fill_n(ram_ + kWindow, CITCAT_WINDOW_MIN_BYTES, std::uint8_t{0});
  put(kWindow, CITCAT_STATE_MAGIC);
  put(kWindow + CITCAT_STATE_CPUID_COUNT, 1);
  put(kWindow + CITCAT_STATE_CPUID(0), CITCAT_CPUID_XSTATE);
  put(kWindow + CITCAT_STATE_CPUID(0) + 4, 3);
  put(kWindow + CITCAT_STATE_MSR(1, 0), CITCAT_STATE_END);
  const Insn first = insn(kCode, {0x90});
  recorder_->begin(first, kWindow);
  EXPECT_TRUE(recorder_->active());
  recorder_.emplace(memory_, *sink_, log_, registers_, CacheModel::none);  // XCR0 is 1
  recorder_->begin(first, kWindow);
  EXPECT_FALSE(recorder_->active());
}

}  // namespace
}  // namespace citcat::monitor
