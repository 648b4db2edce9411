// Handlers of the policy fast::Logged.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& logged_handlers() {
  static const HandlerTable kTable = make_handlers<Logged>();
  return kTable;
}

}  // namespace citcat::fast
