#pragma once
// A part of a run, and where a replay of it may start.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "events/position.h"

namespace citcat {

/// A part of the run, [from, to) in instructions.
struct ReplayRange {
  std::uint64_t from = 0;
  std::uint64_t to = ~std::uint64_t{0};
};

/// The checkpoint of an archive at which to start, or the beginning of the run from which the
/// checkpoints come.
struct CheckpointStart {
  std::size_t series = 0;              ///< in Checkpoints::series()
  std::optional<std::size_t> ordinal;  ///< nullopt: the beginning
  std::uint64_t instruction = 0;
  Position end;  ///< where the replay that took the checkpoint ended
};

}  // namespace citcat
