#pragma once
// What somebody waits for who wants to know of a stretch of the run only whether something was
// stored to certain bytes: that costs next to nothing, where to look at each access does.

#include <cstdint>

#include "events/address.h"

namespace citcat {

/// Bytes within one frame, by whatever linear address and by whomever they are stored to: the
/// processor, its units, other bus masters; the same bytes as before, too. Whoever sets it has the
/// frame watched (Memory::watch()).
struct StoreTrap {
  PhysAddr address;
  std::uint32_t size = 0;  ///< 0: none
  bool met = false;        ///< or may have been, where that cannot be told
};

}  // namespace citcat
