// Handlers that note no accesses.

#include "replay/machine/fast/make_handlers.h"

namespace citcat::fast {

template struct HandlersOf<AccessNotes::none, false>;

}  // namespace citcat::fast
