#pragma once
// The engine's place in the code, the size of that code, and its place on the stack.

#include "events/machine/address.h"
#include "replay/engine/engine.h"

namespace citcat {

/// The default size of the code segment, 16 or 32, or 64 in 64-bit mode.
inline std::uint8_t code_bits(const Engine& engine) {
  if ((engine.hflags() & kHfCs64) != 0) return 64;
  return (engine.hflags() & kHfCs32) != 0 ? 32 : 16;
}

/// Linear address of CS:(E/R)IP.
inline LinearAddr code_address(const Engine& engine) {
  if (code_bits(engine) == 64) return LinearAddr{engine.rip()};
  return linear32(engine.segment_base(kCs), engine.eip());
}

/// 64-bit or compatibility mode.
inline bool in_long_mode(const Engine& engine) { return (engine.hflags() & kHfLma) != 0; }

/// EIP, or in long mode RIP.
inline std::uint64_t whole_ip(const Engine& engine) {
  return in_long_mode(engine) ? engine.rip() : engine.eip();
}

/// A general register as CpuState has it: in long mode all 64 bits of it.
inline std::uint64_t whole_gpr(const Engine& engine, int number) {
  return in_long_mode(engine) ? engine.wide().gpr(number) : engine.gpr(number);
}

/// Linear address of SS:(E/R)SP; of a stack segment of 16 bits by SP alone.
inline LinearAddr stack_address(const Engine& engine) {
  if (code_bits(engine) == 64) return LinearAddr{engine.wide().gpr(kEsp)};
  const bool wide = (engine.hflags() & kHfSs32) != 0;
  const std::uint32_t pointer = engine.gpr(kEsp);
  return linear32(engine.segment_base(kSs), wide ? pointer : pointer & 0xffff);
}

}  // namespace citcat
