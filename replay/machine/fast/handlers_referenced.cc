// Handlers of the policy fast::Referenced.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& referenced_handlers(bool bits64) { return tables_of<Referenced>(bits64); }

}  // namespace citcat::fast
