// Handlers of the policy fast::Told.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& told_handlers(bool bits64) { return tables_of<Told>(bits64); }

}  // namespace citcat::fast
