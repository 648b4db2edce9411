// Small programs in protected mode that are interrupted at once: their registers are known to the
// test alone.

#include <gtest/gtest.h>

#include <algorithm>

#include "capture/import/import.h"
#include "formats/io/error.h"
#include "replay/infer/registers/state_recovery.h"
#include "unit/replay/infer/places/dword_bus.h"
#include "unit/replay/infer/registers/inferred_recording.h"

namespace citcat::test {
namespace {

constexpr std::uint32_t kOuterCode = 0x10000, kHandler = 0x12000, kGuestIdt = 0x14000,
                        kGuestGdt = 0x15000, kOuterStack = 0x16800, kTask = 0x17000,
                        kDirectory = 0x18000, kTable = 0x19000, kData = 0x20000,
                        kInnerStack = 0x16f00;
constexpr std::uint32_t kLinear = 0xc0000000;  ///< of physical 0, where there is paging
constexpr std::uint8_t kGuestVector = 0x30;

class ProtectedRecoveryTest : public testing::Test {
 protected:
  ProtectedRecoveryTest() {
    for (std::uint32_t a = kOuterCode; a < kData + 0x1000; ++a) image_.set(PhysAddr{a}, 0);
    for (std::uint32_t a = kOuterCode; a < kOuterCode + 0x100; ++a) image_.set(PhysAddr{a}, 0x90);
    descriptor(1, 0x00cf9b000000ffff);  // 08: code of level 0
    descriptor(2, 0x00cf93000000ffff);  // 10: data of level 0
    descriptor(3, 0x00cffb000000ffff);  // 18: code of level 3
    descriptor(4, 0x00cff3000000ffff);  // 20: data of level 3
    descriptor(5, 0x00cf93020000ffff);  // 28: data at 20000
    state_.model = CpuModel::p6;
    state_.cr0 = 0x50033;
    state_.cr4 = 0x6d0;
    state_.eip = kOuterCode;
    state_.eflags = 0x202;
    state_.segment[kCs] = {0x08, 0, 0xffffffff, 0xc09b, false};
    for (const int s : {kEs, kSs, kDs, kFs, kGs}) {
      state_.segment[static_cast<std::size_t>(s)] = {0x10, 0, 0xffffffff, 0xc093, false};
    }
    state_.gpr = {0x11111111,  0x22222222, 0x33333333, 0x44444444,
                  kOuterStack, 0x55555555, 0x66666666, 0x77777777};
    state_.gdtr = {kGuestGdt, 0x2f};
    state_.idtr = {kGuestIdt, 0x7ff};
    state_.tr = {0x40, kTask, 0x67, 0x8b, false};
    gate(kHandler);
  }
  void put(std::uint32_t at, std::uint64_t value, unsigned bytes = 4) {
    for (unsigned i = 0; i < bytes; ++i) {
      image_.set(PhysAddr{at + i}, static_cast<std::uint8_t>(value >> (8 * i)));
    }
  }
  void code(std::uint32_t at, std::initializer_list<int> bytes) {
    for (const int b : bytes) image_.set(PhysAddr{at++}, static_cast<std::uint8_t>(b));
  }
  void descriptor(std::uint32_t index, std::uint64_t value) {
    put(kGuestGdt + 8 * index, value, 8);
  }
  void gate(std::uint32_t handler) {
    put(kGuestIdt + 8 * kGuestVector, (handler & 0xffff) | 0x8u << 16);
    put(kGuestIdt + 8 * kGuestVector + 4, (handler & 0xffff0000) | 0x8e00);
  }
  /// Everything is at C0000000 and above as well as where it is.
  void use_paging() {
    state_.cr0 |= 1u << 31;
    state_.cr3 = kDirectory;
    put(kDirectory + 4 * (kLinear >> 22), kTable | 0x63);
    for (std::uint32_t page = kOuterCode; page < kData + 0x1000; page += 0x1000) {
      put(kTable + page / 0x1000 * 4, page | 0x63);
    }
    state_.eip += kLinear;
    state_.gpr[kEsp] += kLinear;
    state_.gdtr.base += kLinear;
    state_.idtr.base += kLinear;
    state_.tr.base += kLinear;
    gate(kLinear + kHandler);
  }
  void use_level_3() {
    state_.segment[kCs] = {0x1b, 0, 0xffffffff, 0xc0fb, false};
    for (const int s : {kEs, kSs, kDs, kFs, kGs}) {
      state_.segment[static_cast<std::size_t>(s)] = {0x23, 0, 0xffffffff, 0xc0f3, false};
    }
    put(kTask + 4, kInnerStack);
    put(kTask + 8, 0x10);
  }
  void record(std::uint64_t instructions) {
    Recording known;
    known.initial = state_;
    known.bus = {CacheForm::none, 0, 4, 0xffffffff};
    known.image = image_.clone();
    known.instructions = instructions;
    Interrupt& i = known.interrupts.emplace_back();
    i.vector = kGuestVector;
    i.position_known = true;
    imported_ = shown_on_bus(known);
  }
  RecoveredState recover() { return recover_registers(imported_); }
  RecoveredState recover(std::uint64_t instructions) {
    record(instructions);
    return recover();
  }
  static RecoveredRegister reg(const RecoveredState& state, const std::string& name) {
    const auto it = std::find_if(state.registers.begin(), state.registers.end(),
                                 [&](const RecoveredRegister& r) { return r.name == name; });
    return it == state.registers.end() ? RecoveredRegister{} : *it;
  }

  CpuState state_;
  MemoryImage image_;
  ImportedRecording imported_;
};

TEST_F(ProtectedRecoveryTest, TheInterruptShowsTheFrameAndTheTables) {
  code(kHandler, {0xcf});  // iret
  code(kOuterCode, {0x90, 0x90});
  const RecoveredState state = recover(2);
  ASSERT_FALSE(state.divergence) << state.divergence->reason;
  EXPECT_EQ(reg(state, "eip").value, kOuterCode);
  EXPECT_EQ(reg(state, "cs").value, 8u);
  EXPECT_EQ(reg(state, "eflags").value, 0x202u);
  EXPECT_EQ(reg(state, "esp").value, kOuterStack);
  EXPECT_EQ(reg(state, "gdtr.base").value, kGuestGdt);
  EXPECT_EQ(reg(state, "idtr.base").value, kGuestIdt);
  EXPECT_EQ(state.state.cr0 >> 31, 0u) << "the handler was fetched from its linear address";
  EXPECT_EQ(reg(state, "eax").source, RegisterSource::free);
}

TEST_F(ProtectedRecoveryTest, SavesAreRegistersAlsoBehindBranches) {
  // push eax; xor eax,eax; jz +1; hlt; push ecx; push eax; pop eax; pop ecx; pop eax; iret
  code(kHandler, {0x50, 0x31, 0xc0, 0x74, 0x01, 0xf4, 0x51, 0x50, 0x58, 0x59, 0x58, 0xcf});
  const RecoveredState state = recover(10);
  ASSERT_FALSE(state.divergence) << state.divergence->reason;
  EXPECT_EQ(reg(state, "eax").source, RegisterSource::saved);
  EXPECT_EQ(reg(state, "eax").value, 0x11111111u);
  EXPECT_EQ(reg(state, "ecx").source, RegisterSource::saved);
  EXPECT_EQ(reg(state, "ecx").value, 0x22222222u);
}

TEST_F(ProtectedRecoveryTest, AnAddressOrAValueGivesARegisterThatNothingSaves) {
  state_.gpr[kEbx] = kData + 0x40;
  state_.gpr[kEdx] = 0x12345678;
  code(kHandler, {0xcf});
  code(kOuterCode, {0x89, 0x53, 0x10, 0x90});  // mov [ebx+10],edx
  const RecoveredState state = recover(3);
  ASSERT_FALSE(state.divergence) << state.divergence->reason;
  EXPECT_EQ(reg(state, "ebx").source, RegisterSource::solved);
  EXPECT_EQ(reg(state, "ebx").value, kData + 0x40);
  EXPECT_EQ(reg(state, "edx").value, 0x12345678u);
}

TEST_F(ProtectedRecoveryTest, PageTablesOnTheBusGiveTheDirectoryAndLinearAddresses) {
  use_paging();
  state_.gpr[kEbx] = kLinear + kData + 0x40;
  code(kHandler, {0xcf});
  code(kOuterCode, {0x8b, 0x43, 0x10, 0x90});  // mov eax,[ebx+10]
  const RecoveredState state = recover(3);
  ASSERT_FALSE(state.divergence) << state.divergence->reason;
  EXPECT_EQ(reg(state, "cr3").value, kDirectory);
  EXPECT_EQ(reg(state, "esp").value, kLinear + kOuterStack);
  EXPECT_EQ(reg(state, "idtr.base").value, kLinear + kGuestIdt);
  EXPECT_EQ(reg(state, "gdtr.base").value, kLinear + kGuestGdt);
  EXPECT_EQ(reg(state, "ebx").value, kLinear + kData + 0x40);
  EXPECT_TRUE(state.memory.empty());
}

TEST_F(ProtectedRecoveryTest, TheTaskSegmentIsWhereTheInnerStackIsRead) {
  use_level_3();
  code(kHandler, {0xcf});
  const RecoveredState state = recover(2);
  ASSERT_FALSE(state.divergence) << state.divergence->reason;
  EXPECT_EQ(reg(state, "tr.base").value, kTask);
  EXPECT_EQ(reg(state, "ss").value, 0x23u);
  EXPECT_EQ(reg(state, "esp").value, kOuterStack);
  EXPECT_EQ(reg(state, "cs").value, 0x1bu);
}

TEST_F(ProtectedRecoveryTest, ASegmentIsOneOfTheTableThatGivesTheAddress) {
  state_.segment[kGs] = {0x28, kData, 0xffffffff, 0xc093, false};
  // mov ax,28; mov fs,ax; iret: the bus shows the descriptor
  code(kHandler, {0x66, 0xb8, 0x28, 0x00, 0x8e, 0xe0, 0xcf});
  code(kOuterCode, {0x65, 0xa3, 0x40, 0x00, 0x00, 0x00, 0x90});  // mov gs:[40],eax
  const RecoveredState state = recover(5);
  ASSERT_FALSE(state.divergence) << state.divergence->reason;
  EXPECT_EQ(state.state.segment[kGs].base, kData);
}

TEST_F(ProtectedRecoveryTest, TrafficThatNoRegisterExplainsIsADivergence) {
  code(kHandler, {0xcf});
  code(kOuterCode, {0xc6, 0x05, 0x40, 0x00, 0x02, 0x00, 0x07, 0x90});  // mov byte [20040],7
  record(3);
  for (BusTransaction& t : imported_.evidence) {
    if (t.op == BusOp::data_write && t.address.value == 0x20040) t.data[0] = 8;
  }
  const RecoveredState state = recover();
  ASSERT_TRUE(state.divergence);
  EXPECT_NE(state.divergence->transaction, ~std::uint64_t{0});
}

TEST_F(ProtectedRecoveryTest, PageTablesThatTheBusNeverShowsAreRefused) {
  use_paging();
  code(kHandler, {0xcf});
  record(2);
  MemoryImage without;
  for (const auto& [number, page] : imported_.recording.image.pages()) {
    if (number == kDirectory / kPageSize) continue;
    for (std::uint32_t i = 0; i < kPageSize; ++i) {
      if (page->valid[i]) without.set(PhysAddr{number * kPageSize + i}, page->data[i]);
    }
  }
  imported_.recording.image = std::move(without);
  std::erase_if(imported_.evidence,
                [](const BusTransaction& t) { return t.address.page() == kDirectory / kPageSize; });
  EXPECT_THROW(recover(), UsageError);
}

}  // namespace
}  // namespace citcat::test
