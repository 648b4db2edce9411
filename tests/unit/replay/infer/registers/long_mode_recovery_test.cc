// Small programs in long mode that are interrupted at once: their registers are known to the test
// alone, or to it and whoever gives them.

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>

#include "events/machine/cpu_state.h"
#include "formats/io/error.h"
#include "replay/infer/registers/state_recovery.h"
#include "unit/replay/infer/places/dword_bus.h"
#include "unit/replay/infer/registers/inferred_recording.h"
#include "unit/replay/machine/long_mode_guest.h"

namespace citcat::test {
namespace {

constexpr std::uint8_t kTakenVector = 0x30;
constexpr std::uint64_t kTakenHigh =
    0xffffffff80000000;  ///< where physical memory begins once more

class LongModeRecovery : public LongModeGuest {
 protected:
  static constexpr std::uint32_t kTask = 0x7000, kInnerStack = 0x2f000, kOtherStack = 0x2e000;

  void SetUp() override {
    LongModeGuest::SetUp();
    // Accessed and dirty: which of two addresses was used must not show in the tables.
    for (const std::uint32_t index : {0u, 511u}) put_quad(kTables + 8 * index, kTables + 0x1067);
    for (const std::uint32_t index : {0u, 510u}) {
      put_quad(kTables + 0x1000 + 8 * index, kTables + 0x2067);
    }
    put_quad(kTables + 0x2000, 0xe7);
    gate(0);
    put(kHandler, {0x48, 0xcf});  // iretq
    put(kCode, {0x90, 0x90, 0x90, 0x90});
    set("rflags", 0x202);
    set("tr.base", kTask);
    set("tr.limit", 0x67);
    for (int i = 0; i < 8; ++i) {
      if (i != kEsp) set(kNames[i], 0x1111111122222222 * static_cast<unsigned>(i + 1));
      set(("r" + std::to_string(8 + i)).c_str(), 0x0101010180000000 + static_cast<unsigned>(i));
    }
    Interrupt& i = recording_.interrupts.emplace_back();
    i.vector = kTakenVector;
    i.position_known = true;
    recording_.bus = {CacheForm::none, 0, 4, 0xffffffff};
  }
  void set(const char* name, std::uint64_t value) {
    ASSERT_TRUE(set_register(recording_.initial, name, value)) << name;
  }
  /// Through the interrupt stack table, where `stack` is not 0.
  void gate(unsigned stack) {
    put_quad(kIdt + 16 * kTakenVector, 0x00018e0000080000 | std::uint64_t{stack} << 32 | 0x8000);
  }
  void use_level_3() {
    set("cs", 0x2b);
    set("cs.attributes", 0xa0fb);
    set("ss", 0x23);
    set("ss.attributes", 0xc0f3);
    put_quad(kTask + 4, kInnerStack);
  }
  void record(std::uint64_t instructions) {
    recording_.instructions = instructions;
    imported_ = shown_on_bus(recording_);
    CpuState& open = imported_.recording.initial;
    open.long_mode.emplace();
    open.unknown = register_names(open.model);
  }
  void give(const std::string& name, std::uint64_t value) {
    CpuState& open = imported_.recording.initial;
    ASSERT_TRUE(set_register(open, name, value)) << name;
    std::erase(open.unknown, name);
  }
  RecoveredState recover(std::uint64_t instructions) {
    record(instructions);
    return recover_registers(imported_);
  }
  static std::string why(const RecoveredState& state) {
    const Divergence& d = *state.divergence;
    return d.reason + ": " + d.expected + ", not " + d.found + ", instruction " +
           std::to_string(d.position.instruction);
  }
  static void expect(const RecoveredState& state, const std::string& name, RegisterSource source,
                     std::uint64_t value) {
    const auto it = std::find_if(state.registers.begin(), state.registers.end(),
                                 [&](const RecoveredRegister& r) { return r.name == name; });
    ASSERT_NE(it, state.registers.end()) << name;
    EXPECT_STREQ(register_source_name(it->source), register_source_name(source)) << name;
    if (source != RegisterSource::free) {
      EXPECT_EQ(it->value, value) << name;
    }
  }

  static constexpr const char* kNames[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"};
  ImportedRecording imported_;
};

TEST_F(LongModeRecovery, TheInterruptShowsTheFrameAndTheTables) {
  set("rsp", kStack - 3);
  const RecoveredState state = recover(2);
  ASSERT_FALSE(state.divergence) << why(state);
  expect(state, "rip", RegisterSource::frame, kCode);
  expect(state, "cs", RegisterSource::frame, 8);
  expect(state, "rflags", RegisterSource::frame, 0x202);
  expect(state, "rsp", RegisterSource::frame, kStack - 3);
  expect(state, "ss", RegisterSource::frame, 16);
  // The table of another level puts the handler there as well.
  expect(state, "cr3", RegisterSource::assumed, kTables);
  expect(state, "efer", RegisterSource::assumed, 0xd01);
  expect(state, "r15", RegisterSource::free, 0);
  for (const char* name : {"r15", "rax", "cr2", "cr8", "xcr0", "fs.base", "fx"}) {
    EXPECT_TRUE(is_unknown(state.state, name)) << name;
  }
  EXPECT_FALSE(is_unknown(state.state, "rsp"));
}

TEST_F(LongModeRecovery, SavesOfSixteenRegistersAreTheirValues) {
  set("rcx", 0x44);
  put(kHandler, {0x41, 0x57,                    // push r15
                 0x45, 0x31, 0xff,              // xor r15d, r15d
                 0x48, 0x89, 0x44, 0x24, 0xf0,  // mov [rsp-16], rax
                 0x89, 0x4c, 0x24, 0xe8,        // mov [rsp-24], ecx: not all of it
                 0x41, 0x57,                    // push r15, which is another now
                 0x41, 0x5f, 0x41, 0x5f,        // pop r15, pop r15
                 0x48, 0xcf});
  const RecoveredState state = recover(9);
  ASSERT_FALSE(state.divergence) << why(state);
  expect(state, "r15", RegisterSource::saved, 0x0101010180000007);
  expect(state, "rax", RegisterSource::saved, 0x1111111122222222);
  expect(state, "rcx", RegisterSource::solved, 0x44);
}

TEST_F(LongModeRecovery, AnAddressOrAValueGivesARegisterThatNothingSaves) {
  set("r12", kTakenHigh + kData + 0x40);
  set("rdx", 0x7654);
  put(kCode, {0x48, 0x8d, 0x4a, 0x01,                // lea rcx, [rdx+1]
              0x49, 0x89, 0x4c, 0x24, 0x10, 0x90});  // mov [r12+10], rcx
  const RecoveredState state = recover(4);
  ASSERT_FALSE(state.divergence) << why(state);
  EXPECT_EQ(*get_register(state.state, "r12") & 0x3fffff, kData + 0x40);
  expect(state, "rdx", RegisterSource::solved, 0x7654);
}

TEST_F(LongModeRecovery, TheTaskSegmentIsWhereTheInnerStackIsRead) {
  use_level_3();
  const RecoveredState state = recover(2);
  ASSERT_FALSE(state.divergence) << why(state);
  EXPECT_EQ(*get_register(state.state, "tr.base") & 0x3fffff, kTask);
  expect(state, "rsp", RegisterSource::frame, kStack);
  expect(state, "ss", RegisterSource::frame, 0x23);
}

TEST_F(LongModeRecovery, TheInterruptStackTableTellsTheTaskSegmentToo) {
  gate(3);
  put_quad(kTask + 36 + 2 * 8, kOtherStack);
  const RecoveredState state = recover(2);
  ASSERT_FALSE(state.divergence) << why(state);
  EXPECT_EQ(*get_register(state.state, "tr.base") & 0x3fffff, kTask);
  expect(state, "rsp", RegisterSource::frame, kStack);
}

TEST_F(LongModeRecovery, BasesAreSolvedFromAddressesAlsoThatOfSwapgs) {
  set("gs.base", kTakenHigh + kData);
  recording_.initial.msrs = {{0xc0000102, kTakenHigh + kData + 0x800}};
  put(kHandler, {0x65, 0x8b, 0x04, 0x25, 0x10, 0, 0, 0,  // mov eax, gs:[10]
                 0x0f, 0x01, 0xf8,                       // swapgs
                 0x65, 0x8b, 0x04, 0x25, 0x20, 0, 0, 0,  // mov eax, gs:[20]
                 0x0f, 0x01, 0xf8, 0x48, 0xcf});
  const RecoveredState state = recover(6);
  ASSERT_FALSE(state.divergence) << why(state);
  EXPECT_EQ(*get_register(state.state, "gs.base") & 0x3fffff, kData);
  const auto swapped = std::find_if(state.state.msrs.begin(), state.state.msrs.end(),
                                    [](const Msr& msr) { return msr.index == 0xc0000102; });
  ASSERT_NE(swapped, state.state.msrs.end());
  EXPECT_EQ(swapped->value & 0x3fffff, kData + 0x800);
}

TEST_F(LongModeRecovery, WhatIsGivenIsTaken) {
  record(2);
  give("r15", 0x1234567812345678);
  give("cr4", 0x620);
  give("cr3", kTables | 5);
  imported_.recording.initial.msrs = {{0xc0000084, 0x47700}};
  const RecoveredState state = recover_registers(imported_);
  ASSERT_FALSE(state.divergence) << why(state);
  expect(state, "r15", RegisterSource::given, 0x1234567812345678);
  expect(state, "cr4", RegisterSource::given, 0x620);
  expect(state, "cr3", RegisterSource::given, kTables | 5);
  EXPECT_FALSE(is_unknown(state.state, "r15"));
  EXPECT_EQ(*get_register(state.state, "r15"), 0x1234567812345678u);
  EXPECT_TRUE(std::is_sorted(state.state.msrs.begin(), state.state.msrs.end(),
                             [](const Msr& a, const Msr& b) { return a.index < b.index; }));
}

TEST_F(LongModeRecovery, WhatIsGivenAgainstTheFrameIsRefused) {
  record(2);
  give("rsp", kStack + 8);
  try {
    recover_registers(imported_);
    FAIL() << "not refused";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "the state that is given has rsp 30008, the interrupt shows 30000");
  }
}

TEST_F(LongModeRecovery, AnEntryThatTheProcessorHadInItsTlbIsSuppliedAndSaidSo) {
  set("r12", 0x00400000 + 0x40);  // its page table is never walked on the bus
  put_quad(kTables + 0x2010, kTables + 0x3067);
  put_quad(kTables + 0x3000, (kData + 0x1000) | 0x67);
  put(kCode, {0x49, 0x8b, 0x04, 0x24, 0x49, 0x89, 0x04, 0x24, 0x90});  // mov rax, [r12]; back
  record(4);
  MemoryImage without;
  for (const auto& [number, page] : imported_.recording.image.pages()) {
    for (std::uint32_t i = 0; i < kPageSize; ++i) {
      const PhysAddr at{number * kPageSize + i};
      if (page->valid[i] && at.page() != (kTables + 0x3000) / kPageSize) {
        without.set(at, page->data[i]);
      }
    }
  }
  imported_.recording.image = std::move(without);
  std::erase_if(imported_.evidence, [](const BusTransaction& t) {
    return t.address.page() == (kTables + 0x3000) / kPageSize;
  });
  give("r12", 0x00400000 + 0x40);
  const RecoveredState state = recover_registers(imported_);
  ASSERT_FALSE(state.divergence) << why(state);
  ASSERT_EQ(state.memory.size(), 1u);
  EXPECT_EQ(state.memory[0].address, PhysAddr{kTables + 0x3000});
  EXPECT_EQ(state.memory[0].data, (std::vector<std::uint8_t>{0x67, 0x10, 2, 0, 0, 0, 0, 0}));
}

/// Registers at the interrupt of which images are stored: XMM3 and XMM5.
class LongModeImages : public LongModeRecovery {
 protected:
  void SetUp() override {
    LongModeRecovery::SetUp();
    set("cr4", 0x6f0 | kOsXsave);
    set("xcr0", 3);
    set("rax", 3);  // all of both
    for (const unsigned xmm : {3u, 5u}) {
      for (unsigned i = 0; i < 16; ++i) {
        recording_.initial.fx[first(xmm) + i] = static_cast<std::uint8_t>(0x10 * xmm + i);
      }
    }
  }
  static unsigned first(unsigned xmm) { return 160 + 16 * xmm; }
  /// With the rest of what XSAVE needs given.
  RecoveredState recover_image(std::uint64_t instructions) {
    record(instructions);
    give("rax", 3);
    give("cr4", 0x6f0 | kOsXsave);
    give("xcr0", 3);
    return recover_registers(imported_);
  }
  static constexpr std::uint64_t kOsXsave = 1u << 18, kXmm3Low = 0x3736353433323130;
};

TEST_F(LongModeImages, OneTellsVectorRegistersThatNothingHasChanged) {
  put(kCode, {0x66, 0x0f, 0xef, 0xed,  // pxor xmm5, xmm5
              0x66, 0x0f, 0x6e, 0xd8,  // movd xmm3, eax, which then is all known
              0x0f, 0x28, 0xcb,        // movaps xmm1, xmm3
              0x0f, 0xae, 0x04, 0x25, 0, 0, 2, 0, 0x90});  // fxsave [20000]
  recording_.initial.fx[first(7) + 2] = 0x44;
  const RecoveredState state = recover_image(6);
  ASSERT_FALSE(state.divergence) << why(state);
  expect(state, "xmm7.low", RegisterSource::solved, 0x440000);
  for (const RecoveredRegister& r : state.registers) {
    EXPECT_TRUE(r.name.substr(0, 3) != "xmm" || r.name == "xmm7.low") << r.name;
  }
  EXPECT_TRUE(is_unknown(state.state, "fx")) << "not all of it";
}

TEST_F(LongModeImages, OneOfXsaveIsWhatFxsaveStores) {
  put(kCode, {0x0f, 0xae, 0x24, 0x25, 0, 0, 2, 0, 0x90});  // xsave [20000]
  const RecoveredState state = recover_image(4);
  ASSERT_FALSE(state.divergence) << why(state);
  EXPECT_FALSE(is_unknown(state.state, "fx"));
  EXPECT_EQ(state.state.fx, recording_.initial.fx);
}

TEST_F(LongModeImages, ThatXsaveIsThereIsAssumedWhereItIsExecuted) {
  put(kCode, {0x0f, 0xae, 0x24, 0x25, 0, 0, 2, 0, 0x90});  // xsave [20000]
  record(4);
  give("rax", 3);
  const RecoveredState state = recover_registers(imported_);
  ASSERT_FALSE(state.divergence) << why(state);
  expect(state, "cr4", RegisterSource::assumed, 0x6f0 | kOsXsave);
  expect(state, "xcr0", RegisterSource::assumed, 3);
  EXPECT_EQ(state.state.fx, recording_.initial.fx);
}

TEST_F(LongModeImages, OneOfXsaveoptLeavesOutWhatIsAsFninitMakesIt) {
  put(kCode, {0x0f, 0xae, 0x34, 0x25, 0, 0, 2, 0, 0x90});  // xsaveopt [20000]
  const RecoveredState state = recover_image(4);
  ASSERT_FALSE(state.divergence) << why(state);
  EXPECT_FALSE(is_unknown(state.state, "fx"));
  EXPECT_EQ(state.state.fx[0], 0x7f);
  EXPECT_EQ(state.state.fx[first(3)], 0x30);
}

TEST_F(LongModeImages, OneOfXsaveBehindAChangeTellsTheRestAsWell) {
  put(kCode, {0x66, 0x0f, 0xef, 0xed,                      // pxor xmm5, xmm5
              0x0f, 0xae, 0x24, 0x25, 0, 0, 2, 0, 0x90});  // xsave [20000]
  const RecoveredState state = recover_image(5);
  ASSERT_FALSE(state.divergence) << why(state);
  expect(state, "xmm3.low", RegisterSource::solved, kXmm3Low);
}

TEST_F(LongModeRecovery, TrafficThatNoRegisterExplainsIsADivergence) {
  put(kCode, {0xc6, 0x04, 0x25, 0x40, 0, 2, 0, 7, 0x90});  // mov byte [20040], 7
  record(3);
  for (BusTransaction& t : imported_.evidence) {
    if (t.op == BusOp::data_write && t.address.value == 0x20040) t.data[0] = 8;
  }
  EXPECT_TRUE(recover_registers(imported_).divergence);
}

TEST_F(LongModeRecovery, AnInterruptOutsideLongModeIsRefusedByName) {
  record(2);
  for (BusTransaction& t : imported_.evidence) {
    if (t.op == BusOp::data_read && t.address.value == kIdt + 16 * kTakenVector + 4) t.data[1] = 0;
  }
  imported_.recording.image.set(PhysAddr{kIdt + 16 * kTakenVector + 5}, 0);
  EXPECT_THROW(recover_registers(imported_), UsageError);
}

}  // namespace
}  // namespace citcat::test
