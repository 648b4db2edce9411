// Handlers that note accesses with their values, in a comparison.

#include "replay/machine/fast/make_handlers.h"

namespace citcat::fast {

template struct HandlersOf<AccessNotes::values, true>;

}  // namespace citcat::fast
