// Handlers that check stores for the trap of a comparison.

#include "replay/machine/fast/make_handlers.h"

namespace citcat::fast {

template struct HandlersOf<AccessNotes::stores, true>;

}  // namespace citcat::fast
