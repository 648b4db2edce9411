#pragma once
// The effect of an instruction on the general registers, as far as addresses can be followed
// through it: enough to say, after a run of instructions, what a register held in the middle of it.

#include <cstdint>

namespace citcat {

/// Changes of general registers by one instruction, apart from the change of ESP in
/// DecodedInstruction::stack_delta.
struct RegisterEffect {
  enum class Kind : std::uint8_t {
    none,
    set,   ///< target = constant
    add,   ///< target += constant
    copy,  ///< target = source + constant
  };
  Kind kind = Kind::none;
  std::int8_t target = -1;  ///< Gpr
  std::int8_t source = -1;  ///< Gpr, for copy
  std::uint32_t constant = 0;
  std::uint16_t others = 0xffff;  ///< bit g: Gpr g receives something that is not described
};

}  // namespace citcat
