#include "events/processors/taken_lines.h"

#include "events/processors/bus_flags.h"

namespace citcat {
namespace {

/// Who does this has the only copy then: by a line that comes for a store, or by a store, or the
/// read of a locked access, that goes by its cache.
bool takes_line(const BusTransaction& t) {
  if (!t.is_memory()) return false;
  if (t.has(kLine)) return t.op != BusOp::data_write && t.has(kStoreFill);
  return t.op == BusOp::data_write || (t.flags & kLocked) != 0;
}

}  // namespace

bool TakenLines::next(TakenLine& out) {
  for (SharedEvent event; bus_.next(event);) {
    if (event.processor == processor_) {
      if (!event.note) before_ = event.t.index + 1;
      continue;
    }
    const bool takes =
        event.note ? event.note->kind == BusNote::Kind::invalidate : takes_line(event.t);
    if (!takes) continue;
    out = {before_, event.note ? event.note->address : event.t.address};
    return true;
  }
  return false;
}

}  // namespace citcat
