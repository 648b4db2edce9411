#pragma once
// Flags that the manuals leave undefined have values all the same, and programs carry them to
// memory with PUSHF and interrupts. The engine computes one set of values; processors have others.
// This table has what each processor is known to do; docs/fidelity.md has the evidence.

#include <array>
#include <cstdint>

#include "x86/decode/decoded_instruction.h"

namespace citcat {

/// What a rule may need from before the instruction.
struct FlagInputs {
  std::uint32_t eflags = 0;
  std::array<std::uint32_t, 8> gpr{};
  std::uint32_t memory =
      0;  ///< the explicit memory operand's value, zero-extended, if there is one
};

/// True when `model` is known to differ from the engine in flags after `info`, so that inputs must
/// be kept. Cheap enough for every instruction.
bool has_flag_rule(const DecodedInstruction& info, CpuModel model);

/// EFLAGS as `model` leaves them after `info`, which completed without an exception. `eflags` and
/// `gpr` are the engine's after it, `memory` the operand's value then (0 without one). Bits other
/// than OF SF ZF AF PF CF are returned as they are.
std::uint32_t fixed_flags(const DecodedInstruction& info, CpuModel model, const FlagInputs& before,
                          std::uint32_t eflags, const std::uint64_t* gpr, std::uint32_t memory);

}  // namespace citcat
