#pragma once
// Blocks told several at a time.

#include <cstdint>
#include <span>

#include "events/address.h"
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

/// What plain code stored, within one page frame.
struct PlainStore {
  PhysAddr physical;
  std::uint64_t value = 0;  ///< its bytes, the first lowest
  std::uint32_t size = 0;   ///< bytes: 1, 2, 4 or 8
};

/// An observer that wants to know what code stores and nothing else of it (Wants::only_stores), and
/// answers Attention::stores.
class StoreListener {
 public:
  virtual ~StoreListener() = default;
  /// All that plain code stored from instruction `from` on, in order, and nothing behind
  /// Attended::until.
  virtual void stores(std::span<const PlainStore> stores, Position from) = 0;
};

}  // namespace citcat
