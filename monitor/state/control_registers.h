#pragma once
// The registers that decide how memory is reached.

#include <cstdint>

namespace citcat::monitor {

/// What decides about paging. CR3 and EFER are 0 above where a processor has less of them.
struct ControlRegisters {
  std::uint32_t cr0 = 0;
  std::uint64_t cr3 = 0;
  std::uint32_t cr4 = 0;
  std::uint64_t efer = 0;
};

}  // namespace citcat::monitor
