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

/// A checkpoint of an archive to start at, or the beginning of the run of which the checkpoints
/// are.
struct CheckpointStart {
  std::size_t series = 0;              ///< of Checkpoints::series()
  std::optional<std::size_t> ordinal;  ///< nullopt: the beginning
  std::uint64_t instruction = 0;
  Position end;  ///< of the run: where the replay that took the checkpoint ended
};

}  // namespace citcat
