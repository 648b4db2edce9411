// Handlers of the policy fast::ExactTold.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& exact_told_handlers() {
  static const HandlerTable kTable = make_handlers<ExactTold>();
  return kTable;
}

}  // namespace citcat::fast
