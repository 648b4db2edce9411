// Handlers of the policy fast::Logged.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& logged_handlers(bool bits64) { return tables_of<Logged>(bits64); }

}  // namespace citcat::fast
