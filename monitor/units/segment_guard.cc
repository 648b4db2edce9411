#include "monitor/units/segment_guard.h"

#include <cstdio>

namespace citcat::monitor {

void SegmentGuard::learn() {
  Registers& registers = cpu_.registers;
  const SegmentMode mode = cpu_.in_real_mode()          ? SegmentMode::real
                           : registers.in_virtual8086() ? SegmentMode::virtual8086
                                                        : SegmentMode::protected_mode;
  cpu_.segments.learn(
      mode, [&](unsigned n) { return registers.selector(n); }, [&] { return registers.state(); });
}

bool SegmentGuard::refuses(const Insn& insn, bool store, std::uint64_t linear, std::size_t size) {
  const int segment = store ? insn.what.stores_to : insn.what.loads_from;
  if (insn.code == CodeSize::bits64 || segment < 0 ||
      cpu_.segments.allows(static_cast<unsigned>(segment), static_cast<std::uint32_t>(linear),
                           static_cast<std::uint32_t>(size), store))
    return false;
  static constexpr const char* kNames[SegmentLimits::kSegments] = {"ES", "CS", "SS",
                                                                   "DS", "FS", "GS"};
  char text[160];
  std::snprintf(
      text, sizeof text,
      "%zu bytes at %08llx were %s through %s, whose limit or type makes processors refuse "
      "it with %s",
      size, static_cast<unsigned long long>(linear), store ? "written" : "read", kNames[segment],
      segment == 2 ? "#SS" : "#GP");
  recording_.give_up(text);
  return true;
}

}  // namespace citcat::monitor
