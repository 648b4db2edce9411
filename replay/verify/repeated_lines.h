#pragma once
// Iterations of a string instruction that access the same cache lines as the iteration before.

#include <algorithm>
#include <cstdint>
#include <span>

#include "replay/machine/observer.h"

namespace citcat {

/// How many iterations after number `n` access, one by one, the same lines as that. `references`:
/// of number 0; those of each further one are `step` bytes higher, modulo 2^32. `line_bytes`: a
/// power of two.
inline std::uint32_t iterations_in_lines(std::span<const DataReference> references,
                                         std::uint32_t step, std::uint32_t n,
                                         std::uint32_t line_bytes) {
  std::uint32_t same = ~0u;
  const bool down = step >> 31 != 0;
  const std::uint32_t stride = down ? 0 - step : step;
  if (stride == 0) return same;
  for (const DataReference& r : references) {
    const std::uint32_t begin = r.physical.low32() + n * step;
    for (const std::uint32_t byte : {begin, begin + r.size - 1}) {
      const std::uint32_t in_line = byte & (line_bytes - 1);
      same = std::min(same, (down ? in_line : line_bytes - 1 - in_line) / stride);
    }
  }
  return same;
}

}  // namespace citcat
