// Handlers that note no accesses, in a comparison.

#include "replay/machine/fast/make_handlers.h"

namespace citcat::fast {

template struct HandlersOf<AccessNotes::none, true>;

}  // namespace citcat::fast
