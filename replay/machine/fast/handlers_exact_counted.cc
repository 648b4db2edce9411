// Handlers of the policy fast::ExactCounted.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& exact_counted_handlers(bool bits64) { return tables_of<ExactCounted>(bits64); }

}  // namespace citcat::fast
