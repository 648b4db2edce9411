// Handlers of the policy fast::Plain.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& plain_handlers(bool bits64) { return tables_of<Plain>(bits64); }

}  // namespace citcat::fast
