#pragma once
// A guest in 64-bit mode with four levels of page tables, whose instructions tests put in place by
// hand.

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "replay/session/replayer.h"

namespace citcat {

/// Linear memory is physical memory, in pages of 2 MiB; that at 200000 may not be executed. Vectors
/// 6, 7, 13 and 14 lead to 18000.
class LongModeGuest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kTables = 0x1000, kGdt = 0x5000, kIdt = 0x6000, kCode = 0x10000,
                                 kHandler = 0x18000, kData = 0x20000, kStack = 0x30000;

  void SetUp() override {
    for (std::uint32_t at = 0; at < 0x40000; ++at) recording_.image.set(PhysAddr{at}, 0);
    put_quad(kTables, kTables + 0x1007);
    put_quad(kTables + 0x1000, kTables + 0x2007);
    put_quad(kTables + 0x2000, 0x87);
    put_quad(kTables + 0x2008, 0x8000000000200087);
    put_quad(kGdt + 8, 0x00af9b000000ffff);
    put_quad(kGdt + 16, 0x00cf93000000ffff);
    put_quad(kGdt + 24, 0x00cffb000000ffff);
    put_quad(kGdt + 32, 0x00cff3000000ffff);
    put_quad(kGdt + 40, 0x00affb000000ffff);
    for (const std::uint32_t vector : {6u, 7u, 13u, 14u}) {
      put_quad(kIdt + 16 * vector, 0x00018e0000080000 | (kHandler & 0xffff));
    }
    CpuState& s = recording_.initial;
    s.model = CpuModel::x86_64;
    s.ram_bytes = 0x400000;
    s.long_mode.emplace();
    const std::vector<std::pair<const char*, std::uint64_t>> registers = {{"cr0", 0x80050033},
                                                                          {"cr3", kTables},
                                                                          {"cr4", 0x620},
                                                                          {"efer", 0xd01},
                                                                          {"rip", kCode},
                                                                          {"rsp", kStack},
                                                                          {"rflags", 2},
                                                                          {"cs", 8},
                                                                          {"cs.limit", ~0u},
                                                                          {"cs.attributes", 0xa09b},
                                                                          {"ss", 16},
                                                                          {"ss.limit", ~0u},
                                                                          {"ss.attributes", 0xc093},
                                                                          {"gdtr.base", kGdt},
                                                                          {"gdtr.limit", 47},
                                                                          {"idtr.base", kIdt},
                                                                          {"idtr.limit", 0xfff}};
    for (const auto& [name, value] : registers) ASSERT_TRUE(set_register(s, name, value)) << name;
  }
  void put(std::uint64_t at, std::initializer_list<int> bytes) {
    for (const int b : bytes) recording_.image.set(PhysAddr{at++}, static_cast<std::uint8_t>(b));
  }
  void put_quad(std::uint64_t at, std::uint64_t value) {
    for (unsigned i = 0; i < 8; ++i) {
      recording_.image.set(PhysAddr{at + i}, static_cast<std::uint8_t>(value >> (8 * i)));
    }
  }
  /// 32-bit code with PAE, of which the first page-directory pointer is set.
  void begin_in_protected_mode() {
    for (const auto& [name, value] : {std::pair<const char*, std::uint64_t>{"efer", 0},
                                      {"cs.attributes", 0xc09b},
                                      {"ds", 16},
                                      {"ds.limit", ~0u},
                                      {"ds.attributes", 0xc093}}) {
      ASSERT_TRUE(set_register(recording_.initial, name, value)) << name;
    }
    put_quad(kTables, (kTables + 0x2000) | 1);
  }
  void set_cpuid(std::uint32_t ecx_of_1) {
    recording_.initial.cpuid = {{0, 1, 0, 0, 0}, {1, 0, 0, ecx_of_1, 0}};
  }
  /// The observer, if any, has to take addresses of 64 bits.
  ReplayReport run(std::uint64_t instructions, Observer* observer = nullptr) {
    ReplayOptions options;
    options.to = instructions;
    Replayer replayer(recording_, observer, options);
    const ReplayReport report = replayer.run();
    after_ = replayer.machine().save();
    return report;
  }
  std::uint64_t after(const char* name) const { return get_register(after_, name).value_or(0); }

  Recording recording_;
  CpuState after_;
};

}  // namespace citcat
