#pragma once
// A trap for stores to certain bytes, for callers that need to know of a stretch of the run only
// whether such a store happened. It costs almost nothing, unlike a check of each access.

#include <cstdint>

#include "events/machine/address.h"

namespace citcat {

/// Bytes within one frame, by whatever linear address and by whomever they are stored to: the
/// processor, its units, other bus masters; the same bytes as before, too. Whoever sets it has the
/// frame watched (Memory::watch()).
struct StoreTrap {
  PhysAddr address;
  std::uint32_t size = 0;  ///< 0: none
  bool met = false;        ///< or may have been, where that cannot be known
};

}  // namespace citcat
