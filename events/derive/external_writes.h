#pragma once

#include <vector>

#include "events/recording.h"

namespace citcat {

/// Fewer events for the same memory: a device writes a block at once, but each read that shows a
/// part of it is an event of its own. An event joins the one before it when it continues its bytes
/// and, by its window, may have happened as early as that one.
///
/// Windows begin at the last access as far as it is known, which may be earlier than it was; so the
/// result must be verified by a replay before it takes the place of the original.
ExternalWrites merge_external_writes(const ExternalWrites& writes);

}  // namespace citcat
