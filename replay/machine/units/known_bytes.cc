#include "replay/machine/units/known_bytes.h"

#include <optional>

namespace citcat {

std::size_t known_bytes(CpuContext& cpu, LinearAddr at, Access access,
                        std::span<std::uint8_t> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const LinearAddr here = cpu.onward(at, i);
    const auto page = cpu.mmu.look_up(here, access, cpu.program(), Lookup::free);
    const auto byte =
        page ? cpu.memory.defined_byte(page->frame.plus32(here.offset_in_page())) : std::nullopt;
    if (!byte) return i;
    bytes[i] = *byte;
  }
  return bytes.size();
}

}  // namespace citcat
