#include "replay/machine/segment_rights.h"

namespace citcat {

void SegmentRights::refresh(const CpuContext& cpu) {
  stale = false;
  read = written = 0;
  const Engine& engine = cpu.engine;
  for (int s = 0; s < 6; ++s) {
    const auto mask = static_cast<std::uint8_t>(1u << s);
    const std::uint32_t flags = engine.segment_flags(s);
    const bool expand_down = (flags & 0x1c00) == 0x1400;
    if (engine.segment_limit(s) != 0xffffffff || expand_down) continue;
    const bool present = (flags & 0x8000) != 0, code = (flags & 0x800) != 0,
               bit = (flags & 0x200) != 0;
    const bool any = !cpu.protected_mode();
    if (any || (present && (!code || bit))) read |= mask;
    if (any || (present && !code && bit)) written |= mask;
  }
}

}  // namespace citcat
