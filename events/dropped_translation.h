#pragma once
// Translations that the recorded processor has dropped by itself.

#include "events/machine/address.h"
#include "events/position.h"

namespace citcat {

/// Before the instruction, or the iteration of a REP, at `position` the processor no longer held
/// the translation of a page although nothing had told it to drop it. It may do so at any time
/// (Intel SDM vol. 3, 4.10.4.1). It matters only if a program has changed the page's entries in the
/// tables without dropping the translation: the next access then uses and marks the new entries.
struct DroppedTranslation {
  Position position;
  LinearAddr page;  ///< its first address; in a larger page, that of the 4 KiB
  bool operator==(const DroppedTranslation&) const = default;
};

}  // namespace citcat
