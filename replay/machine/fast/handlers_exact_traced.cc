// Handlers of the policy fast::ExactTraced.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& exact_traced_handlers(bool bits64) { return tables_of<ExactTraced>(bits64); }

}  // namespace citcat::fast
