// Handlers that note the addresses of accesses.

#include "replay/machine/fast/make_handlers.h"

namespace citcat::fast {

template struct HandlersOf<AccessNotes::addresses, false>;

}  // namespace citcat::fast
