#pragma once
// Why the replay of a recording that is being viewed diverged from its evidence.

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "cli/placed_recording.h"
#include "replay/diagnose/explanation.h"
#include "replay/verify/comparison_policy.h"

namespace citcat {

/// Explains the first divergence, for so many seconds at most; nothing if the archive has no
/// evidence to try causes with. Throws Interrupted.
std::optional<Explanation> find_causes(
    const PlacedRecording& placed, const ComparisonPolicy& policy, unsigned seconds,
    const std::function<void(const char* what, std::uint64_t done)>& progress = {});

/// The answer to the question `causes` (docs/formats/view-interface.md).
nlohmann::ordered_json causes_answer(const std::optional<Explanation>& explanation);

/// What the first screen says of a divergence: the likeliest cause with it, if there is one.
nlohmann::ordered_json divergence_item(const std::string& recording, const std::string& text,
                                       const std::string& cause);

}  // namespace citcat
