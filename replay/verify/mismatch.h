#pragma once
// A disagreement between bus and replay, and how it is put into words.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "events/bus_transaction.h"
#include "replay/machine/memory.h"

namespace citcat {

struct Mismatch {
  const char* reason = "";
  std::optional<BusTransaction> expected;  ///< nothing where the bus shows nothing
  std::string found;                       ///< what the replay does
};

/// Throws it as a ReplayStopped at `now`.
[[noreturn]] void stop_with(const Mismatch& mismatch, Position now);

/// True for a waiting transaction that belongs to the replay, which ends at `end`, and not to a
/// later run.
inline bool is_left_at(const BusTransaction& t, Position end) {
  return !t.has(kPositionKnown) || t.position < end;
}

std::string packed_hex(std::span<const std::uint8_t> bytes);
std::string write_text(PhysAddr a, std::span<const std::uint8_t> bytes);
/// "bytes " and what memory holds, "??" for a byte that nothing defines.
std::string memory_text(const Memory& memory, PhysAddr a, std::uint32_t size);

}  // namespace citcat
