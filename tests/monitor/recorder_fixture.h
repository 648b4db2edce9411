#pragma once
// What a recorder needs, without an emulator: registers that the test sets, and a log that it
// writes.

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "monitor/recorder/recorder.h"
#include "tests/monitor/bus_test_fixture.h"

namespace citcat::monitor {

/// Flat segments, no paging.
class FixedRegisters final : public Registers {
 public:
  FixedRegisters() {
    state_.cr0 = 1;
    state_.a20 = true;
    for (LoggedSegment& s : state_.segment) s = {0x10, 0, 0xffffffff, 0xcf9300};
  }
  std::uint64_t gpr(unsigned n) override { return state_.gpr[n]; }
  std::uint16_t selector(unsigned n) override {
    return static_cast<std::uint16_t>(state_.segment[n].selector);
  }
  std::uint64_t read_ip() override { return state_.ip; }
  ControlRegisters control() override { return {state_.cr0, state_.cr3, state_.cr4, state_.efer}; }
  bool in_virtual8086() override { return (state_.eflags & 0x20000) != 0; }
  LoggedState state() override { return state_; }
  void forget_segments() override {}
  bool read_memory(std::uint64_t linear, std::span<std::uint8_t> bytes) override {
    if (memory_ == nullptr) return false;
    std::copy_n(memory_->live(linear), bytes.size(), bytes.begin());
    return true;
  }
  std::optional<LongModeRegisters> long_mode_registers() override { return long_mode_; }

  LoggedState state_;
  std::optional<LongModeRegisters> long_mode_;
  const GuestMemory* memory_ = nullptr;  ///< where the emulator has memory
};

class RecorderFixture : public BusTest {
 protected:
  void SetUp() override {
    BusTest::SetUp();
    log_file_ = mkstemp(log_path_.data());
    ASSERT_GE(log_file_, 0);
    ASSERT_TRUE(log_.open(log_path_));
  }
  void TearDown() override {
    close(log_file_);
    unlink(log_path_.c_str());
    BusTest::TearDown();
  }

  /// An instruction of 32 bits that is the first of its block.
  static Insn insn(std::uint32_t linear, std::vector<std::uint8_t> bytes) {
    Insn out;
    out.linear = out.physical = linear;
    out.size = static_cast<std::uint8_t>(bytes.size());
    out.first_in_block = true;
    std::copy(bytes.begin(), bytes.end(), out.bytes.begin());
    out.what = classify(bytes, CodeSize::bits32);
    return out;
  }

  /// The instruction is in flight, at the beginning of the recording.
  void begin_in_flight(Recorder& recorder, const Insn& first) {
    registers_.state_.ip = first.linear;
    recorder.begin(first, 0);
    recorder.start(first);
    (void)seen();
  }

  std::string log_path_ = testing::TempDir() + "citcat-monitor-test-XXXXXX";
  int log_file_ = -1;
  InterruptLog log_;
  FixedRegisters registers_;
};

}  // namespace citcat::monitor
