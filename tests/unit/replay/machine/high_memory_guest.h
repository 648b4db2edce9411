#pragma once
// A guest of which the capture shows memory beyond 4 GiB at stand-ins.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include "events/machine/stand_ins.h"
#include "unit/replay/machine/long_mode_guest.h"

namespace citcat {

/// A chain of tables and a page that all lie beyond 4 GiB, for 8000200000.
class HighMemoryGuest : public LongModeGuest {
 protected:
  static constexpr std::uint64_t kBeyond = 0x100000000, kLinear = 0x8000200000;
  static constexpr std::uint32_t kHeld = 0xc0000000, kPointers = 0x11000, kDirectory = 0x12000,
                                 kTable = 0x13000, kPage = 0x14000;

  void SetUp() override {
    LongModeGuest::SetUp();
    for (std::uint32_t at = kPointers; at <= kPage; at += 0x1000) hold(at);
    recording_.bus.stand_ins = stand_ins_;
    put_quad(kTables + 8, kBeyond | kPointers | 7);
    put_quad(kHeld + kPointers, kBeyond | kDirectory | 7);
    put_quad(kHeld + kDirectory + 8, kBeyond | kTable | 7);
    put_quad(kHeld + kTable, kBeyond | kPage | 7);
    put_quad(kHeld + kPage, 0x1122334455667788);
    set_register(recording_.initial, "rbx", kLinear);
  }
  void hold(std::uint32_t at) {
    ASSERT_EQ(stand_ins_->add(PhysAddr{kHeld + at}, MachineAddr{kBeyond + at}), "");
    for (std::uint32_t i = 0; i < kPageSize; ++i) recording_.image.set(PhysAddr{kHeld + at + i}, 0);
  }
  std::uint64_t quad_at(const Machine& machine, std::uint32_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, machine.memory().host(PhysAddr{at}), sizeof value);
    return value;
  }

  std::shared_ptr<StandIns> stand_ins_ = std::make_shared<StandIns>();
};

}  // namespace citcat
