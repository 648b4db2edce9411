#pragma once
// Translations that the recorded processor has dropped by itself.

#include "events/machine/address.h"
#include "events/position.h"

namespace citcat {

/// Before the instruction, or the iteration of a REP, at `position` the processor no longer held
/// the translation of a page although nothing had told it to drop it. It may do so at any time
/// (Intel SDM vol. 3, 4.10.4.1). It matters only if a program has changed the page's entries in the
/// tables and dropped nothing: the next access finds what they say now, and marks them.
struct DroppedTranslation {
  Position position;
  LinearAddr page;  ///< where it begins; of a larger page, the piece of 4 KiB
  bool operator==(const DroppedTranslation&) const = default;
};

}  // namespace citcat
