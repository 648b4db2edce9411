// Handlers of the policy fast::ExactTraced.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& exact_traced_handlers() {
  static const HandlerTable kTable = make_handlers<ExactTraced>();
  return kTable;
}

}  // namespace citcat::fast
