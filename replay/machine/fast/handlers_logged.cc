// Handlers that note accesses with their values.

#include "replay/machine/fast/make_handlers.h"

namespace citcat::fast {

template struct HandlersOf<AccessNotes::values, false>;

}  // namespace citcat::fast
