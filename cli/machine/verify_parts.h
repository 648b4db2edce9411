#pragma once
// `verify --jobs`: the parts between checkpoints compared side by side.

#include <optional>

#include "cli/report/verdict.h"
#include "events/machine/memory_image.h"
#include "replay/verify/comparison_policy.h"

namespace citcat {

/// The verdict on a recording whose parts are compared in this many processes; nullopt if one
/// process has to compare the whole: it has no checkpoints, or the parts alone do not show that it
/// agrees. `captured`: memory at the end; may be null.
std::optional<Verdict> verify_in_parts(const PlacedRecording& placed, const MemoryImage* captured,
                                       const ComparisonPolicy& policy, unsigned jobs);

}  // namespace citcat
