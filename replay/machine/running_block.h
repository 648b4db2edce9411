#pragma once
// The block that runs unreported, and what the segments allow such blocks.

#include <cstdint>

#include "replay/machine/block_template.h"
#include "replay/machine/cpu_context.h"

namespace citcat {

/// The block that the engine executes without reporting its instructions, until it is retired.
struct RunningBlock {
  static constexpr std::uint32_t kUnknown = 1;  ///< no template's mark

  BlockTemplate* block = nullptr;  ///< null: none does
  /// When it was reached by nothing but blocks and goes on like that: their mark.
  std::uint32_t surroundings = kUnknown;
  bool speculated = false;   ///< the judge agreed before it ran
  bool rolled_back = false;  ///< it is, as soon as the engine stops
  std::uint32_t hot = 0;     ///< linear address of the block that the engine was stopped at
  BlockRegisters registers;
};

/// The engine checks neither limits nor types of segments: code that runs unreported, and strings
/// made here, may use only those where there is nothing to check (Intel SDM vol. 3, 5.3 and 5.4).
/// Bit s of a mask: SegmentRegister s. Valid while not `stale`.
struct SegmentRights {
  bool stale = true;
  bool code_unlimited = false;
  std::uint8_t read = 0, written = 0;  ///< those without a limit for reads, for stores
  std::uint8_t flat = 0;               ///< those with base 0

  /// Takes the rights from the engine's segments, and their bases for `registers`.
  void refresh(const CpuContext& cpu, BlockRegisters& registers);
  bool allow(const BlockTemplate& block) const {
    return (block.segments_read & ~read) == 0 && (block.segments_written & ~written) == 0 &&
           (block.segments_flat & ~flat) == 0 && code_unlimited;
  }
  /// What decides whether a template may run besides where it lies; never 0. Its mode and the base
  /// of its code are its translation's.
  std::uint32_t mark() const {
    return std::uint32_t{read} | std::uint32_t{written} << 8 | std::uint32_t{flat} << 16 |
           std::uint32_t{code_unlimited} << 24 | 1u << 31;
  }
};

}  // namespace citcat
