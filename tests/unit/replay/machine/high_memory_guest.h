#pragma once
// A guest that uses memory beyond 4 GiB.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "unit/replay/machine/long_mode_guest.h"

namespace citcat {

/// A chain of tables and a page that all lie beyond 4 GiB, for 8000200000.
class HighMemoryGuest : public LongModeGuest {
 protected:
  static constexpr std::uint64_t kBeyond = 0x6300000000, kLinear = 0x8000200000;
  static constexpr std::uint32_t kPointers = 0x11000, kDirectory = 0x12000, kTable = 0x13000,
                                 kPage = 0x14000;

  void SetUp() override {
    LongModeGuest::SetUp();
    for (std::uint32_t at = kPointers; at <= kPage; at += 0x1000) hold(at);
    put_quad(kTables + 8, kBeyond | kPointers | 7);
    put_quad(kBeyond + kPointers, kBeyond | kDirectory | 7);
    put_quad(kBeyond + kDirectory + 8, kBeyond | kTable | 7);
    put_quad(kBeyond + kTable, kBeyond | kPage | 7);
    put_quad(kBeyond + kPage, 0x1122334455667788);
    set_register(recording_.initial, "rbx", kLinear);
  }
  void hold(std::uint32_t at) {
    for (std::uint32_t i = 0; i < kPageSize; ++i)
      recording_.image.set(PhysAddr{kBeyond + at + i}, 0);
  }
  std::uint64_t quad_at(const Machine& machine, std::uint64_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, machine.memory().host(PhysAddr{at}), sizeof value);
    return value;
  }
};

}  // namespace citcat
