// Handlers of the policy fast::Counted.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& counted_handlers(bool bits64) { return tables_of<Counted>(bits64); }

}  // namespace citcat::fast
