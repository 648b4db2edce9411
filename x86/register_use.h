#pragma once
// Which registers an instruction reads and writes, implied ones too.

#include <cstddef>
#include <cstdint>
#include <span>

namespace citcat {

/// Bits of RegisterUse.
inline constexpr std::uint64_t kUsesGpr = 1;          ///< << Gpr: any part of it
inline constexpr std::uint64_t kUsesFlags = 1u << 8;  ///< EFLAGS
inline constexpr std::uint64_t kUsesX87 = 1u << 9;    ///< the x87 unit, MMX registers with it
inline constexpr std::uint64_t kUsesXmm = 1u << 16;   ///< << number, XMM0 to XMM7
inline constexpr std::uint64_t kUsesExtendedGpr = std::uint64_t{1} << 24;  ///< << number - 8
inline constexpr std::uint64_t kUsesExtendedXmm = std::uint64_t{1} << 32;  ///< << number - 8
inline constexpr std::uint64_t kUsesSegments = 1u
                                               << 10;  ///< any segment register, where it is loaded

/// How many bits there are.
inline constexpr std::size_t kUsedRegisters = 40;

struct RegisterUse {
  std::uint64_t read = 0, written = 0;
};

/// The registers that the instruction in `bytes` uses, in code of 16, 32 or 64 bits. Reads what it
/// writes only in part. Empty for other bytes. Source: Zydis' tables of operands.
RegisterUse register_use(std::span<const std::uint8_t> bytes, int bits);

}  // namespace citcat
