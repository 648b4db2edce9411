#pragma once
// Random programs with everything a replay meets: faults that a handler repairs or skips, pages
// that come and go, code that patches code, strings, interrupts and writes from outside. They run
// for ever in one of the processor's modes; the recording says how far.

#include <cstdint>
#include <string>

#include "events/recording.h"

namespace citcat {

enum class GuestMode : std::uint8_t {
  kernel,       ///< ring 0, 32 bits, paging
  user,         ///< ring 3, 32 bits, paging
  flat,         ///< ring 0, 32 bits, no paging
  protected16,  ///< ring 3, 16-bit code without limits, paging
  real,
  virtual8086,
};
inline constexpr GuestMode kGuestModes[] = {GuestMode::kernel, GuestMode::user,
                                            GuestMode::flat,   GuestMode::protected16,
                                            GuestMode::real,   GuestMode::virtual8086};
std::string guest_mode_name(GuestMode mode);
/// 32-bit code.
constexpr bool is_wide(GuestMode mode) {
  return mode == GuestMode::kernel || mode == GuestMode::user || mode == GuestMode::flat;
}

/// The same program for the same arguments. `events`: NMIs and external writes at random places.
Recording random_guest(GuestMode mode, std::uint64_t seed, std::uint64_t instructions, bool events);

}  // namespace citcat
