#pragma once
// Records of whole blocks, written by the machine itself.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "events/position.h"

namespace citcat {

/// What an observer of instructions may be besides (Observer::records()): while a stretch is open it
/// is told of blocks by their KT records (docs/formats/kt.md), with linear addresses, in memory of
/// its own, instead of by Observer::block().
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
