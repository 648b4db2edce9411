#pragma once
// The place in the code that a processor has reached.

#include "events/machine/address.h"
#include "events/machine/cpu_state.h"

namespace citcat {

/// Long mode, 64-bit or compatibility mode: EFER.LMA (bit 10) is set (Intel SDM vol. 3, 10.8.5).
inline bool is_in_long_mode(const CpuState& state) {
  constexpr std::uint64_t kLongModeActive = 1u << 10;
  return state.long_mode && (state.long_mode->efer & kLongModeActive) != 0;
}
/// 64-bit mode: CS.L (bit 13 of the attributes) is set, too (the same).
inline bool is_in_64_bit_mode(const CpuState& state) {
  constexpr std::uint16_t kLongCode = 1u << 13;
  return is_in_long_mode(state) && (state.segment[kCs].attributes & kLongCode) != 0;
}

/// EIP, or RIP where the processor has long mode.
inline std::uint64_t instruction_pointer(const CpuState& state) {
  const std::uint64_t high = state.long_mode ? state.long_mode->rip_high : 0;
  return high << 32 | state.eip;
}

/// Linear address of the instruction that comes next.
inline LinearAddr next_instruction(const CpuState& state) {
  if (is_in_64_bit_mode(state)) return LinearAddr{instruction_pointer(state)};
  return linear32(state.segment[kCs].base, state.eip);
}

}  // namespace citcat
