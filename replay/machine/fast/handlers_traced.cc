// Handlers of the policy fast::Traced.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& traced_handlers(bool bits64) { return tables_of<Traced>(bits64); }

}  // namespace citcat::fast
