#pragma once
// Which processor wrote what another one read.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "events/processors/shared_bus.h"

namespace citcat {

/// A byte of memory that a transaction of a processor showed.
struct ShownByte {
  PhysAddr address;
  std::optional<std::uint64_t> transaction;  ///< that of the processor; nullopt: its first read
  std::optional<std::uint8_t> writer = {};   ///< look only for writes of this processor
};

/// The write by which the bus had it: a store, or, where the writer has a cache, the write-back of
/// the line, which follows the store.
struct ForeignWrite {
  std::uint8_t processor = 0;
  std::optional<std::uint64_t> transaction;  ///< of that processor, if it is known
  std::optional<Position> position;          ///< where it was, if that was counted
  bool is_store = false;  ///< the position is that of the store, also behind a cache
};

/// For each byte that `reader` was shown, which other processor had written it last; nullopt where
/// none had. Takes all of `bus`. Throws as SharedBus::next() does.
std::vector<std::optional<ForeignWrite>> find_foreign_writes(SharedBus& bus, std::uint8_t reader,
                                                             std::span<const ShownByte> bytes);

}  // namespace citcat
