#pragma once
// The code of a random program: chunks of instructions, one after another and around for ever.

#include <cstdint>
#include <random>
#include <vector>

#include "unit/replay/machine/random_guest.h"

namespace citcat {

namespace random_layout {

// Physical (and, with paging, linear) addresses.
inline constexpr std::uint32_t kCodeAt = 0x10040, kDataAt = 0x20000, kStackAt = 0x30f00;
inline constexpr std::uint32_t kChunks = 64, kDataPages = 8;

}  // namespace random_layout

/// Puts the code into `ram`. `patches`: it stores to itself. Returns where the bytes lie that may
/// be changed, by itself or from outside.
std::vector<std::uint32_t> put_random_code(GuestMode mode, bool patches, std::mt19937_64& random,
                                           std::vector<std::uint8_t>& ram);

}  // namespace citcat
