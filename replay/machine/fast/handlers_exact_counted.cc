// Handlers of the policy fast::ExactCounted.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& exact_counted_handlers() {
  static const HandlerTable kTable = make_handlers<ExactCounted>();
  return kTable;
}

}  // namespace citcat::fast
