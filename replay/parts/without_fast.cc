// Stand-in for the handlers of the part "fast": all code runs in the engine, several times slower.

#include "formats/io/error.h"
#include "replay/machine/execution_path.h"
#include "replay/machine/fast/handler_table.h"

namespace citcat {

bool has_fast_tier() { return false; }

namespace fast {

const HandlerTable& handlers(Policy, bool) {
  throw InternalError("no code runs in blocks without the part \"fast\"");
}

}  // namespace fast

}  // namespace citcat
