// Handlers of the policy fast::Exact.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& exact_handlers(bool bits64) { return tables_of<Exact>(bits64); }

}  // namespace citcat::fast
