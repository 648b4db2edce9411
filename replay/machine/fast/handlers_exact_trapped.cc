// Handlers of the policy fast::ExactTrapped.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& exact_trapped_handlers() {
  static const HandlerTable kTable = make_handlers<ExactTrapped>();
  return kTable;
}

}  // namespace citcat::fast
