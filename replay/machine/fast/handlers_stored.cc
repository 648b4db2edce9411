// Handlers of the policy fast::Stored.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& stored_handlers(bool bits64) { return tables_of<Stored>(bits64); }

}  // namespace citcat::fast
