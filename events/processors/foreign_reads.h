#pragma once
// Where a processor first sees what another bus master stored to memory: also where the value is
// the one that it had seen there before, so that its recording has no external write.

#include <cstdint>
#include <optional>
#include <span>

#include "events/machine/address.h"
#include "events/position.h"

namespace citcat {

/// Bytes of one store, side by side.
struct ForeignRead {
  Position at;  ///< of the reader
  PhysAddr address;
  std::uint32_t size = 0;
  std::optional<std::uint8_t> writer;  ///< a processor; nullopt: another device
  std::uint64_t stored_at = 0;         ///< number of the writer's instruction that stored them
  /// The reader's transaction that shows them on the bus, before the instruction at the position
  /// uses them. nullopt: that instruction reads them, and no transaction shows them.
  std::optional<std::uint64_t> transaction;
};

/// Those of one reader.
class ForeignReads {
 public:
  struct Window {
    Position from;
    std::span<const ForeignRead> reads;  ///< ascending; valid until the next call of before()
  };

  virtual ~ForeignReads() = default;
  /// All with from <= at < `to`. There are none before `from` if that is the beginning.
  virtual Window before(Position to) = 0;
};

}  // namespace citcat
