// Handlers of the policy fast::Told.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& told_handlers() {
  static const HandlerTable kTable = make_handlers<Told>();
  return kTable;
}

}  // namespace citcat::fast
