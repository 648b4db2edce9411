// Handlers of the policy fast::Referenced.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& referenced_handlers() {
  static const HandlerTable kTable = make_handlers<Referenced>();
  return kTable;
}

}  // namespace citcat::fast
