#pragma once
// Bits of the control registers and of EFER (Intel SDM vol. 3, 2.5 and table 2-1).

#include <cstdint>

namespace citcat {

inline constexpr std::uint64_t kCr0Pe = 1, kCr0Ts = 1u << 3, kCr0Et = 1u << 4, kCr0Nw = 1u << 29,
                               kCr0Cd = 1u << 30, kCr0Pg = 1u << 31;
inline constexpr std::uint64_t kCr4Tsd = 1u << 2, kCr4De = 1u << 3, kCr4Pse = 1u << 4,
                               kCr4Pae = 1u << 5, kCr4Pge = 1u << 7, kCr4Umip = 1u << 11,
                               kCr4FsGsBase = 1u << 16, kCr4Pcide = 1u << 17,
                               kCr4OsXsave = 1u << 18;
inline constexpr std::uint64_t kEferSce = 1, kEferLme = 1u << 8, kEferLma = 1u << 10,
                               kEferNxe = 1u << 11;

}  // namespace citcat
