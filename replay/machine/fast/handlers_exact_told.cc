// Handlers of the policy fast::ExactTold.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& exact_told_handlers(bool bits64) { return tables_of<ExactTold>(bits64); }

}  // namespace citcat::fast
