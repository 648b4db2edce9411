#pragma once
// The address that LEA calculates: no access, and therefore not among the operands of the decoded
// instruction.

#include <cstdint>

#include "replay/machine/fast/fast_state.h"
#include "replay/x86/decoded_instruction.h"

namespace citcat::fast {

/// Where State has a general register.
constexpr std::uint8_t register_at(unsigned number) {
  return static_cast<std::uint8_t>(number * 8);
}

/// As an operand of 64 bits takes it.
constexpr std::uint64_t sign_extended(std::uint32_t value) {
  return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(value)});
}

/// Puts the address of LEA into `op`; `next`: offset of the next instruction.
void put_lea_address(const DecodedInstruction& info, std::uint64_t next, Op& op);

}  // namespace citcat::fast
