// Handlers of the policy fast::Traced.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& traced_handlers() {
  static const HandlerTable kTable = make_handlers<Traced>();
  return kTable;
}

}  // namespace citcat::fast
