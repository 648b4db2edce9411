#pragma once
// The facts about a transaction that a bus shared by several processors shows, besides BusFlag.

#include <cstdint>

namespace citcat {

/// Bits of BusTransaction::flags, above those of BusFlag.
inline constexpr std::uint16_t kSharedFill = 2048;  ///< HIT#: another processor keeps a copy
inline constexpr std::uint16_t kLocked = 4096;      ///< LOCK#
/// An acknowledged interrupt comes from the processor's local APIC.
inline constexpr std::uint16_t kOfLocalApic = 8192;

}  // namespace citcat
