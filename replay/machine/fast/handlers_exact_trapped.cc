// Handlers of the policy fast::ExactTrapped.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& exact_trapped_handlers(bool bits64) { return tables_of<ExactTrapped>(bits64); }

}  // namespace citcat::fast
