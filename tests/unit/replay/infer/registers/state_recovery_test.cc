// Small programs that are interrupted at once: their registers are known to the test alone.

#include "replay/infer/registers/state_recovery.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "formats/io/error.h"
#include "unit/replay/infer/registers/inferred_recording.h"
#include "unit/replay/machine/watched_guest.h"

namespace citcat::test {
namespace {

class StateRecoveryTest : public testing::Test {
 protected:
  StateRecoveryTest() {
    guest_.set("ax", 0x1234);
    guest_.set("bx", 0x4321);
    guest_.set("cx", 0x0007);
    guest_.set("di", 0x0040);
    guest_.interrupt_at({0, 0});
  }
  RecoveredState recover(std::uint64_t instructions) {
    imported_ = guest_.record(instructions);
    imported_.recording.initial = {};
    imported_.recording.initial.model = CpuModel::i8088;
    return recover_registers(imported_);
  }
  static RecoveredRegister reg(const RecoveredState& state, const std::string& name) {
    const auto it = std::find_if(state.registers.begin(), state.registers.end(),
                                 [&](const RecoveredRegister& r) { return r.name == name; });
    return it == state.registers.end() ? RecoveredRegister{} : *it;
  }
  WatchedGuest guest_;
  ImportedRecording imported_;
};

TEST_F(StateRecoveryTest, TheFrameGivesFlagsAndTheNextInstruction) {
  guest_.handler({0xcf});
  const RecoveredState state = recover(4);
  EXPECT_FALSE(state.divergence);
  EXPECT_EQ(reg(state, "cs").value, 0x100u);
  EXPECT_EQ(reg(state, "ip").value, 0u);
  EXPECT_EQ(reg(state, "flags").value, 0xf202u);
  EXPECT_EQ(reg(state, "cs").source, RegisterSource::frame);
  const std::uint64_t top = (reg(state, "ss").value << 4) + reg(state, "sp").value;
  EXPECT_EQ(top, 0x20100u);
}

TEST_F(StateRecoveryTest, PushesOfTheHandlerGiveRegistersBeforeItChangesThem) {
  // push cx; mov ax,5; push ax; push ds; pop ds; pop ax; pop cx; iret
  guest_.handler({0x51, 0xb8, 0x05, 0x00, 0x50, 0x1e, 0x1f, 0x58, 0x59, 0xcf});
  const RecoveredState state = recover(9);
  EXPECT_FALSE(state.divergence);
  EXPECT_EQ(reg(state, "cx").source, RegisterSource::saved);
  EXPECT_EQ(reg(state, "cx").value, 7u);
  EXPECT_EQ(reg(state, "ds").source, RegisterSource::saved);
  EXPECT_EQ(reg(state, "ds").value, 0x3000u);
  EXPECT_NE(reg(state, "ax").source, RegisterSource::saved) << "it was changed before";
}

TEST_F(StateRecoveryTest, TheFirstAddressThatDependsOnARegisterGivesIt) {
  guest_.handler({0x1e, 0x06, 0x07, 0x1f, 0xcf});  // push ds, es; pop es, ds; iret
  guest_.code({0xb0, 0x55, 0xaa, 0xaa});           // mov al,55; stosb; stosb
  const RecoveredState state = recover(8);
  EXPECT_FALSE(state.divergence);
  EXPECT_EQ(reg(state, "di").source, RegisterSource::solved);
  EXPECT_EQ(reg(state, "di").value, 0x40u);
  EXPECT_NE(reg(state, "di").transaction, ~std::uint64_t{0});
}

TEST_F(StateRecoveryTest, TheFirstValueThatDependsOnARegisterGivesIt) {
  guest_.handler({0x1e, 0x1f, 0xcf});                             // push ds; pop ds; iret
  guest_.code({0x43, 0x89, 0x1e, 0x10, 0x00, 0xa3, 0x12, 0x00});  // inc bx; mov [10],bx; [12],ax
  const RecoveredState state = recover(6);
  EXPECT_FALSE(state.divergence);
  EXPECT_EQ(reg(state, "bx").source, RegisterSource::solved);
  EXPECT_EQ(reg(state, "bx").value, 0x4321u);
  EXPECT_EQ(reg(state, "ax").value, 0x1234u);
}

TEST_F(StateRecoveryTest, RegistersThatNothingDependsOnAreFreeAndUnknown) {
  guest_.handler({0x1e, 0x1f, 0xcf});
  guest_.code({0x89, 0x1e, 0x10, 0x00, 0xb9, 0x01, 0x00});  // mov [10],bx; mov cx,1
  const RecoveredState state = recover(5);
  EXPECT_FALSE(state.divergence);
  for (const char* name : {"ax", "cx", "dx", "bp", "si", "di"}) {
    EXPECT_EQ(reg(state, name).source, RegisterSource::free) << name;
  }
  const auto& unknown = state.state.unknown;
  EXPECT_NE(std::find(unknown.begin(), unknown.end(), "ecx"), unknown.end());
  EXPECT_EQ(std::find(unknown.begin(), unknown.end(), "ebx"), unknown.end());
}

TEST_F(StateRecoveryTest, TrafficThatNoRegisterExplainsIsADivergence) {
  guest_.handler({0x1e, 0x1f, 0xcf});
  guest_.code({0xc6, 0x06, 0x10, 0x00, 0x07, 0x90});  // mov byte [10],7; nop
  imported_ = guest_.record(5);
  for (BusTransaction& t : imported_.evidence) {
    if (t.op == BusOp::data_write && t.address.value == 0x30010) t.data[0] = 8;
  }
  imported_.recording.initial = {};
  imported_.recording.initial.model = CpuModel::i8088;
  const RecoveredState state = recover_registers(imported_);
  ASSERT_TRUE(state.divergence);
  EXPECT_NE(state.divergence->transaction, ~std::uint64_t{0});
}

TEST_F(StateRecoveryTest, ARecordingWithoutAFrameIsRefused) {
  guest_.handler({0xcf});
  imported_ = guest_.record(3);
  std::erase_if(imported_.evidence,
                [](const BusTransaction& t) { return t.op == BusOp::data_write; });
  EXPECT_THROW(recover_registers(imported_), UsageError);
}

}  // namespace
}  // namespace citcat::test
