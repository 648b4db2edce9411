// Handlers that note stores, and the addresses of accesses.

#include "replay/machine/fast/make_handlers.h"

namespace citcat::fast {

template struct HandlersOf<AccessNotes::stores, false>;

}  // namespace citcat::fast
