#include "unit/x86/single_step_suite.h"

#include <algorithm>
#include <filesystem>

#include "unit/x86/golden_trace.h"

namespace citcat::test {
namespace {

Registers16 take_registers(const MooState& state, Registers16 registers) {
  constexpr std::array<const char*, 8> kGpr = {"ax", "cx", "dx", "bx", "sp", "bp", "si", "di"};
  constexpr std::array<const char*, 4> kSegments = {"es", "cs", "ss", "ds"};
  for (std::size_t i = 0; i < 8; ++i)
    registers.gpr[i] = state.find(kGpr[i]).value_or(registers.gpr[i]);
  for (std::size_t i = 0; i < 4; ++i) {
    if (const auto selector = state.find(kSegments[i])) registers.bases[i] = *selector << 4;
  }
  registers.cs = static_cast<std::uint16_t>(state.find("cs").value_or(registers.cs));
  registers.ip = static_cast<std::uint16_t>(state.find("ip").value_or(registers.ip));
  registers.flags = static_cast<std::uint16_t>(state.find("flags").value_or(registers.flags));
  return registers;
}

constexpr std::uint8_t kHighLaneOff = 2, kMemoryRead = 5, kMemoryWrite = 6;

}  // namespace

Registers16 registers_before(const MooTest& test) { return take_registers(test.initial, {}); }
Registers16 registers_after(const MooTest& test) {
  return take_registers(test.final, registers_before(test));
}

std::map<std::uint32_t, std::uint8_t> memory_before(const MooTest& test) {
  std::map<std::uint32_t, std::uint8_t> memory;
  for (const MooByte& byte : test.initial.ram) memory[byte.address] = byte.value;
  return memory;
}

std::map<std::uint32_t, std::uint8_t> memory_after(const MooTest& test) {
  std::map<std::uint32_t, std::uint8_t> memory = memory_before(test);
  for (const MooByte& byte : test.final.ram) memory[byte.address] = byte.value;
  return memory;
}

// A row with T-state 1 opens a cycle; its data is in the last T-state 2 row before the next one.
std::vector<BusAccess> data_accesses(const MooTest& test) {
  std::vector<BusAccess> accesses;
  bool open = false, odd = false;
  for (const MooCycle& row : test.cycles) {
    if (row.t_state == 1) {
      open = row.bus_status == kMemoryRead || row.bus_status == kMemoryWrite;
      if (!open) continue;
      BusAccess access;
      access.address = row.address;
      access.write = row.bus_status == kMemoryWrite;
      odd = (row.address & 1) != 0;
      access.size = !odd && (row.pins & kHighLaneOff) == 0 ? 2 : 1;  // BHE# low
      accesses.push_back(access);
    } else if (row.t_state == 2 && open) {
      accesses.back().value = static_cast<std::uint16_t>(odd ? row.data >> 8 : row.data);
    }
  }
  return accesses;
}

std::vector<std::string> suite_files() {
  std::vector<std::string> files;
  const std::string folder = shared_data_folder() + "/data/moo/80286-real";
  if (!std::filesystem::exists(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().string().find(".MOO") != std::string::npos) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace citcat::test
