#pragma once
// Guesses of a value, from the bus's evidence about everything that was computed from it, and from
// the ways in which people and tools get values wrong.

#include <cstdint>
#include <vector>

namespace citcat {

/// What a replay did, and what the bus shows in its place: both of a value, or both an address.
struct ShownDifference {
  std::uint64_t ours = 0, shown = 0;
};

/// Values of `bits` bits from which what the bus shows comes, where moves, additions, subtractions,
/// exclusive ORs, shifts or parts of a register are between: likeliest first, `value` not among
/// them.
std::vector<std::uint64_t> solved_values(std::uint64_t value, unsigned bits,
                                         const std::vector<ShownDifference>& differences);

/// Values of `bits` bits that `value` is mistyped for: bytes swapped, a hexadecimal digit too few
/// or too many, off by one or two, negated or inverted. `value` is not among them.
std::vector<std::uint64_t> mistyped_values(std::uint64_t value, unsigned bits);

}  // namespace citcat
