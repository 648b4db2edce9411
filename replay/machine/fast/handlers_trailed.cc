// Handlers of the policy fast::Trailed.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& trailed_handlers(bool bits64) { return tables_of<Trailed>(bits64); }

}  // namespace citcat::fast
