#pragma once
// Page tables as a debugger reads them: those of one address space, whether or not it is in use,
// without effect on the machine (Intel SDM vol. 3, chapter 4).

#include <cstdint>

#include "events/machine/address.h"
#include "events/machine/cpu_state.h"
#include "replay/machine/memory.h"

namespace citcat {

class PageTables {
 public:
  /// The page tables that are in use with these registers.
  explicit PageTables(const CpuState& cpu);

  struct Walk {
    bool mapped = false;
    PhysAddr at;              ///< where the address lies; if not mapped, the entry that says so
    std::uint32_t bytes = 0;  ///< of the entry
    bool known = true;        ///< whether the entry is known; if not, nobody has read it yet
  };
  Walk walk(const Memory& memory, LinearAddr address) const;

 private:
  bool paging_, large_pages_, pae_, long_mode_;
  std::uint64_t root_;
};

}  // namespace citcat
