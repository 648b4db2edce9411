// Handlers that note the addresses of accesses, in a comparison.

#include "replay/machine/fast/make_handlers.h"

namespace citcat::fast {

template struct HandlersOf<AccessNotes::addresses, true>;

}  // namespace citcat::fast
