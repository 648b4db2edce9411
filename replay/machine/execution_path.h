#pragma once
// The two ways of a machine through the same instructions.

#include <cstdint>

namespace citcat {

/// How the machine runs plain code.
enum class ExecutionPath : std::uint8_t {
  instructions,  ///< the engine reports every instruction, and every access is checked before
  blocks,        ///< plain code runs in the fast tier, block by block, where no listener wants more
};

}  // namespace citcat
