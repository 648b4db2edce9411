#pragma once
// Random programs with everything a replay meets: faults that a handler repairs or skips, pages
// that come and go, code that patches code, strings, interrupts and writes from outside. They run
// for ever in one of the processor's modes; the recording says how far.

#include <cstdint>
#include <random>
#include <span>
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
  kernel64,       ///< ring 0 of 64-bit mode, at the end of linear memory
  user64,         ///< ring 3 of 64-bit mode
  compatibility,  ///< ring 3, 32 bits, in long mode
};
inline constexpr GuestMode kGuestModes[] = {
    GuestMode::kernel,      GuestMode::user,   GuestMode::flat,
    GuestMode::protected16, GuestMode::real,   GuestMode::virtual8086,
    GuestMode::kernel64,    GuestMode::user64, GuestMode::compatibility};
/// True for the modes of a processor in long mode.
constexpr bool is_long_mode(GuestMode mode) { return mode >= GuestMode::kernel64; }
std::string guest_mode_name(GuestMode mode);
/// 32-bit code.
constexpr bool is_wide(GuestMode mode) {
  return mode == GuestMode::kernel || mode == GuestMode::user || mode == GuestMode::flat;
}

/// The same program for the same arguments. `events`: NMIs and external writes at random places.
Recording random_guest(GuestMode mode, std::uint64_t seed, std::uint64_t instructions, bool events);

/// The first of such programs, with events, that does not end before its time.
Recording long_random_guest(GuestMode mode, std::uint64_t instructions);

/// That of a mode of long mode (is_long_mode()). `patches`: it stores to itself.
Recording random_wide_guest(GuestMode mode, bool patches, std::mt19937_64& random,
                            std::uint64_t instructions, bool events);
/// Adds NMIs and external writes, some to the bytes at `patchable`.
void add_random_events(Recording& r, std::uint64_t instructions,
                       std::span<const std::uint32_t> patchable, std::mt19937_64& random);

}  // namespace citcat
