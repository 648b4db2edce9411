// Handlers of the policy fast::Plain.

#include "replay/machine/fast/make_handlers.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

const HandlerTable& plain_handlers() {
  static const HandlerTable kTable = make_handlers<Plain>();
  return kTable;
}

}  // namespace citcat::fast
