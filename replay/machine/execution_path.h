#pragma once
// The two ways in which a machine executes the same instructions.

#include <cstdint>

namespace citcat {

/// How the machine runs ordinary code.
enum class ExecutionPath : std::uint8_t {
  instructions,  ///< the engine runs each instruction, after every access was checked
  blocks,        ///< ordinary code runs in the fast tier, block by block, if no observer wants more
};

/// Whether this build can run code in blocks: the part "fast" (cmake/CITCATParts.cmake). Without it
/// everything runs by instructions, with the same results, several times slower.
bool has_fast_tier();

}  // namespace citcat
