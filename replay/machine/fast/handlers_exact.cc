// Handlers of the policy fast::Exact.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& exact_handlers() {
  static const HandlerTable kTable = make_handlers<Exact>();
  return kTable;
}

}  // namespace citcat::fast
