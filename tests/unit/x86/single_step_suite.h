#pragma once
// The single-step tests of a real 80286, prepared for comparison with our rules.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "formats/captures/moo.h"

namespace citcat::test {

/// Registers of a 16-bit processor in encoding order.
struct Registers16 {
  std::array<std::uint64_t, 8> gpr{};
  std::array<std::uint64_t, 6> bases{};
  std::uint16_t ip = 0, flags = 0, cs = 0;
};

/// One data access of the bus: a byte or a word.
struct BusAccess {
  std::uint32_t address = 0;
  std::uint8_t size = 1;
  bool write = false;
  std::uint16_t value = 0;
};

Registers16 registers_before(const MooTest& test);
/// Final registers: those that changed over those before.
Registers16 registers_after(const MooTest& test);
/// Memory as the test gives it, by physical address.
std::map<std::uint32_t, std::uint8_t> memory_before(const MooTest& test);
std::map<std::uint32_t, std::uint8_t> memory_after(const MooTest& test);
/// Data reads and writes in bus order (80286 encoding: docs/formats/moo.md).
std::vector<BusAccess> data_accesses(const MooTest& test);
/// Paths of the suite's files, sorted; empty when the shared data is absent.
std::vector<std::string> suite_files();

}  // namespace citcat::test
