#pragma once
// KT records of whole blocks, written by the machine itself.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "events/position.h"

namespace citcat {

/// A second interface that an observer of instructions may have (Observer::records()). While a
/// stretch is open, the machine writes the KT records of blocks (docs/formats/kt.md), with linear
/// addresses, into memory of the observer instead of calling Observer::block().
class KtRecords {
 public:
  struct Room {
    std::uint8_t* at = nullptr;
    /// Bytes in which records of a block may begin; behind them there are kBeyond more.
    std::size_t bytes = 0;
    std::uint64_t until = 0;  ///< first instruction that must not be among them
  };
  static constexpr std::size_t kBeyond = 4096;

  virtual ~KtRecords() = default;
  /// Records of instructions from `now` on may be written. nullopt: the next block is to be told.
  virtual std::optional<Room> open(Position now) = 0;
  /// So many bytes were written since open(), whole records of so many instructions.
  virtual void close(std::size_t bytes, std::uint64_t instructions) = 0;
};

}  // namespace citcat
