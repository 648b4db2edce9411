#pragma once
// The rights of segments for code whose accesses are not checked one by one.

#include <cstdint>

#include "replay/machine/cpu_context.h"

namespace citcat {

/// Strings made here may use only segments where there is nothing to check (Intel SDM vol. 3, 5.3
/// and 5.4). Bit s of a mask: SegmentRegister s. Valid while not `stale`.
struct SegmentRights {
  bool stale = true;
  std::uint8_t read = 0, written = 0;  ///< those without a limit for reads, for stores

  /// Takes the rights from the engine's segments.
  void refresh(const CpuContext& cpu);
};

}  // namespace citcat
