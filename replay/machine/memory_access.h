#pragma once
// Who accesses memory and for what, and how the architecture refuses it.

#include <cstdint>

#include "events/machine/address.h"

namespace citcat {

enum class Access : std::uint8_t { read, write, execute };

/// Whose rights an access has. CR4.SMAP keeps pages of users from supervisors, unless EFLAGS.AC is
/// set, and from the processor's own accesses, which the Intel SDM calls implicit (vol. 3, 4.6.1).
enum class Who : std::uint8_t {
  user,        ///< the program, at privilege level 3
  supervisor,  ///< the program, at any other level
  processor,   ///< the processor itself, with supervisor rights: descriptor tables, task segments
  anybody,     ///< nobody's rights are asked for
};
/// Who the program is.
constexpr Who program(bool user) { return user ? Who::user : Who::supervisor; }

/// A page fault as the architecture reports it.
struct PageFault {
  LinearAddr address;  ///< for CR2
  std::uint32_t error_code = 0;
};

/// Thrown when a translation or read needs memory that no evidence defines, or that does not
/// exist: the replay has diverged from the evidence.
struct UndefinedMemory {
  PhysAddr address;
  std::uint32_t size = 0;
  const char* what = "";
};

}  // namespace citcat
