#pragma once
// Bytes of a transaction as a mask, and the numbers of the lines that they are in.

#include <cstdint>

#include "events/bus_transaction.h"

namespace citcat {

/// Bits 0 to `size`-1, each of which stands for a byte of a transaction.
constexpr std::uint32_t all_bytes(std::uint32_t size) {
  return size >= 32 ? ~0u : (1u << size) - 1;
}

/// Number of the 16 bytes that an address lies in, the shortest lines that processors have.
constexpr std::uint64_t line_of(PhysAddr a) { return a.value / 16; }

/// One number for the lines that a transaction may be of at once.
constexpr std::uint64_t window_of(PhysAddr a) { return a.value / kMaxTransactionBytes; }

}  // namespace citcat
