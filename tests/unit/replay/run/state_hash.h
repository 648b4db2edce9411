#pragma once
// One number for everything that a debugger can look at: registers, and memory with what is known
// of it.

#include <cstdint>
#include <string>

#include "events/machine/cpu_state.h"
#include "formats/io/hash.h"
#include "replay/machine/memory.h"

namespace citcat::test {

inline std::string state_hash(const CpuState& cpu, const Memory& memory) {
  Hasher128 hasher;
  const auto add = [&](const void* at, std::size_t size) {
    hasher.update({static_cast<const std::uint8_t*>(at), size});
  };
  for (const std::string& name : register_names(CpuModel::unknown)) {
    if (name == "fx") continue;
    const std::uint64_t value = get_register(cpu, name).value_or(0);
    add(&value, sizeof value);
  }
  add(cpu.fx.data(), cpu.fx.size());
  const std::uint8_t modes[2] = {cpu.halted, cpu.in_smm};
  add(modes, sizeof modes);
  for (const FrameNumber page : memory.mapped_pages()) {
    if (!memory.has_defined(page)) continue;
    const PhysAddr first{page * kPageSize};
    if (memory.is_defined(first, kPageSize)) {
      add(&page, sizeof page);
      add(memory.host(first), kPageSize);
      continue;
    }
    for (std::uint32_t i = 0; i < kPageSize; ++i) {
      const auto byte = memory.defined_byte(first.plus32(i));
      if (!byte) continue;
      const std::uint32_t place[2] = {first.low32() + i, *byte};
      add(place, sizeof place);
    }
  }
  return hasher.value().hex();
}

}  // namespace citcat::test
