// Handlers of the policy fast::StoredTrailed.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& stored_trailed_handlers(bool bits64) { return tables_of<StoredTrailed>(bits64); }

}  // namespace citcat::fast
