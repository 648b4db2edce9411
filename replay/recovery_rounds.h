#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "events/recording.h"
#include "replay/replayer.h"

namespace citcat {

/// How far a replay with the registers found so far agrees with the bus.
struct RecoveryProgress {
  std::uint64_t agreed = 0;
  bool ok = false;  ///< up to the first interrupt without a place
};

/// Works registers out and gives places to the interrupts that follow, in turn: each may depend on
/// the other. `solve` finds registers as far as interrupts have places, and returns why it cannot;
/// `replay` tries them. Returns why the recording cannot be followed to its end.
std::optional<Divergence> solve_and_place(
    Recording& recording, const std::function<std::unique_ptr<EvidenceReader>()>& evidence,
    const std::function<std::optional<Divergence>()>& solve,
    const std::function<RecoveryProgress()>& replay);

}  // namespace citcat
