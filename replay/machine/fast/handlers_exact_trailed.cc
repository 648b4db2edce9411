// Handlers of the policy fast::ExactTrailed.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& exact_trailed_handlers(bool bits64) { return tables_of<ExactTrailed>(bits64); }

}  // namespace citcat::fast
