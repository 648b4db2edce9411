// Handlers of the policy fast::Counted.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& counted_handlers() {
  static const HandlerTable kTable = make_handlers<Counted>();
  return kTable;
}

}  // namespace citcat::fast
