#pragma once

#include <vector>

#include "events/recording.h"

namespace citcat {

/// Joins events for the same memory: a device writes a block at once, but each read that shows a
/// part of it is an event of its own. An event joins the one before it if its bytes follow the
/// other's and, by its window, it may have happened as early.
///
/// The last access, at which a window begins, may in truth have been later than is known; so a
/// replay must verify the result before it takes the place of the original.
ExternalWrites merge_external_writes(const ExternalWrites& writes);

}  // namespace citcat
