#pragma once
// Blocks told several at a time.

#include <cstdint>
#include <span>

#include "events/position.h"
#include "replay/machine/executed_block.h"

namespace citcat {

/// An observer (Observer) that takes blocks that ran one behind the other in one call, where
/// nothing else happened in between. It is still told single ones by Observer::block().
class BatchListener {
 public:
  virtual ~BatchListener() = default;
  /// All ran at one level; the first begins at `first`, and they have `count` instructions
  /// together.
  virtual void blocks(std::span<const ExecutedBlock> blocks, Position first,
                      std::uint32_t count) = 0;
};

/// An observer that wants to know what code stores and nothing else of it (Wants::only_stores), and
/// takes stores of many blocks in one call.
class StoreListener {
 public:
  virtual ~StoreListener() = default;
  /// All that plain code before instruction `end` has stored since it was told last, in order;
  /// DataReference::instruction has no meaning. False: tell it block by block.
  virtual bool stores(std::span<const DataReference> stores, std::uint64_t end) = 0;
};

}  // namespace citcat
